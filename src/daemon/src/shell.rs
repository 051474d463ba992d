//! Words for a shell.

use std::env;

use nix::unistd::geteuid;

/// A word as the shell reads it.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A word as people would type it: in quotes only where the shell needs them.
pub fn typed(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { quoted(word) }
}

/// The advice to run this command again as root; none if root runs it. The program has its whole path, because `sudo`
/// does not look in a user's own folders.
pub fn as_root() -> Option<String> {
    if geteuid().is_root() {
        return None;
    }
    let program = env::current_exe().map_or_else(|_| "hopwise".to_owned(), |path| path.display().to_string());
    let words = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let command: Vec<_> = std::iter::once(program).chain(words).map(|word| typed(&word)).collect();
    Some(format!("run it as root: sudo {}", command.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_word_comes_through_the_shell_as_it_is() {
        for word in ["", "plain", "a b", "it's", "$HOME `x` \"y\" \\", "*\n;"] {
            for written in [quoted(word), typed(word)] {
                let read =
                    std::process::Command::new("sh").args(["-c", &format!("printf %s {written}")]).output();
                assert_eq!(read.expect("sh runs").stdout, word.as_bytes(), "{word}");
            }
        }
        assert_eq!(typed("topology.hops=3"), "topology.hops=3");
    }
}
