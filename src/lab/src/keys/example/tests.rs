//! Examples are what stands in the files.

use serde_yaml::Value;

use crate::keys::FileKind;

#[test]
fn an_example_is_yaml_with_the_value_of_its_file() {
    let mut seen = 0;
    for &kind in FileKind::ALL {
        for key in kind.keys() {
            let Some(example) = kind.example(&key.path) else { continue };
            let read: Value =
                serde_yaml::from_str(&example.line).unwrap_or_else(|error| panic!("{error}: {example:?}"));
            let mut value = read;
            for step in key.path.split('.') {
                value = match value {
                    Value::Mapping(of) => of.into_iter().next().expect("an entry").1,
                    other => panic!("{step} of {other:?}"),
                };
                if let Some(first) =
                    value.as_sequence().and_then(|of| of.first()).filter(|_| step.ends_with("[]"))
                {
                    value = first.clone();
                }
            }
            let alone: Value = serde_yaml::from_str(&example.value).expect("YAML");
            assert_eq!(value, alone, "{}", key.path);
            seen += 1;
        }
    }
    assert!(seen > 200, "{seen}");
}

#[test]
fn an_example_stands_in_one_line_with_what_is_around_it() {
    let line = |kind: FileKind, path| kind.example(path).expect("an example").line;
    assert_eq!(line(FileKind::Node, "links[].mtu"), "links: [{ mtu: 1500 }]");
    assert_eq!(
        line(FileKind::Proxy, "stations[].mobiles[].address"),
        "stations: [{ mobiles: [{ address: 10.9.0.2 }] }]"
    );
}
