//! Words for a shell.

/// A word as the shell reads it.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_word_comes_through_the_shell_as_it_is() {
        for word in ["", "plain", "a b", "it's", "$HOME `x` \"y\" \\", "*\n;"] {
            let read = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", quoted(word))])
                .output();
            assert_eq!(read.expect("sh runs").stdout, word.as_bytes(), "{word}");
        }
    }
}
