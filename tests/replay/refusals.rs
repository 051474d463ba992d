//! Refusals of texts.

use hopwise_lab::located::Refusal;
use hopwise_lab::plain;

/// A refusal names a place inside of the text, and steers no terminal.
pub(crate) fn check_refusal(text: &str, refused: Option<Box<Refusal>>) {
    let Some(refused) = refused else { return };
    assert!(refused.line >= 1 && refused.line <= text.split('\n').count().max(1), "{refused}");
    assert!(refused.column >= 1 && !refused.to_string().is_empty());
    let shown = plain::text(&refused.to_string());
    assert_eq!(shown, refused.to_string(), "control characters reach a terminal");
}
