//! Any text is a spec or is refused inside the text; a spec prints as an equivalent spec.

use hopwise_agents::SpecError;
use hopwise_agents::spec::{parse_receiver, parse_senders, parse_shadows};

pub(crate) fn replay(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    check(text, |text| parse_receiver(text).map(|spec| spec.to_string()));
    check(text, |text| parse_senders(text).map(|list| list.to_string()));
    check(text, |text| parse_shadows(text).map(|list| list.to_string()));
}

fn check(text: &str, canonical: impl Fn(&str) -> Result<String, SpecError>) {
    match canonical(text) {
        Ok(printed) => assert_eq!(canonical(&printed).ok().as_ref(), Some(&printed), "{text:?}"),
        Err(refused) => {
            let place = &refused.place;
            assert!(text.get(place.clone()).is_some(), "{text:?}: {place:?} is not inside the text");
            assert!(!refused.to_string().is_empty());
        }
    }
}
