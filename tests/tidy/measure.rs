//! The lengths of functions, and the lines of a file without tests.

use super::lexer::{Token, tokens};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of its `fn`, counted from 1.
    pub(crate) line: usize,
    /// The number of lines from `fn` to the closing brace, both counted.
    pub(crate) lines: usize,
}

/// All functions with a body, also inside functions, in traits and in macros.
pub(crate) fn functions(source: &str) -> Vec<Function> {
    let tokens = tokens(source);
    let mut found = Vec::new();
    for (place, pair) in tokens.windows(2).enumerate() {
        let [keyword, name] = pair else { continue };
        // `fn(u8) -> u8` is a type and `fn $name` a macro's.
        let named = name.text.starts_with(|first: char| first.is_alphabetic() || first == '_');
        if keyword.text != "fn" || !named {
            continue;
        }
        if let Some(last) = end_of_item(&tokens, place) {
            let lines = tokens[last].line - keyword.line + 1;
            let has_body = tokens[last].text == "}";
            if has_body {
                found.push(Function { name: name.text.to_owned(), line: keyword.line, lines });
            }
        }
    }
    found
}

/// The lines of a file without the items under `#[cfg(test)]`.
pub(crate) fn lines_without_tests(source: &str) -> usize {
    let tokens = tokens(source);
    let (mut tested, mut place) = (0, 0);
    while place < tokens.len() {
        let end = if is_cfg_test(&tokens[place..]) { end_of_item(&tokens, place) } else { None };
        if let Some(last) = end {
            tested += tokens[last].line - tokens[place].line + 1;
            place = last;
        }
        place += 1;
    }
    source.lines().count() - tested
}

/// Returns whether `#[cfg(test)]` or a longer `cfg` that needs `test` begins here.
fn is_cfg_test(tokens: &[Token<'_>]) -> bool {
    let opening = ["#", "[", "cfg", "("];
    if tokens.len() < opening.len() || tokens.iter().zip(opening).any(|(token, text)| token.text != text) {
        return false;
    }
    let condition = tokens.iter().take_while(|token| token.text != "]");
    let words: Vec<_> = condition.map(|token| token.text).collect();
    words.contains(&"test") && !words.contains(&"not") && !words.contains(&"any")
}

/// The closing brace or the semicolon of the item that begins at `first`. It is the first one outside of all
/// parentheses and brackets of the item's head.
fn end_of_item(tokens: &[Token<'_>], first: usize) -> Option<usize> {
    let (mut depth, mut braces) = (0_usize, 0_usize);
    for (place, token) in tokens.iter().enumerate().skip(first) {
        match token.text {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                if braces == 0 && depth == 0 {
                    return Some(place);
                }
            }
            ";" if depth == 0 && braces == 0 => return Some(place),
            _ => {}
        }
    }
    None
}

#[test]
fn a_function_is_measured_from_its_signature_to_its_brace() {
    let source = "struct A;\nfn short() {}\nimpl A {\n    fn long(\n        &self,\n    ) -> [u8; 2] {\n\
                  \"}\";\n    }\n}";
    let found = functions(source);
    let sizes: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect();
    assert_eq!(sizes, [("short", 2, 1), ("long", 4, 5)]);
}

#[test]
fn functions_inside_functions_and_macros_are_measured_too() {
    let source = "proptest! {\n #[test]\n fn a(x in 0..9) {\n  fn b() {\n  }\n }\n}";
    let sizes: Vec<_> = functions(source).iter().map(|f| (f.name.clone(), f.lines)).collect();
    assert_eq!(sizes, [("a".to_owned(), 4), ("b".to_owned(), 2)]);
}

#[test]
fn signatures_without_a_body_and_function_types_are_no_functions() {
    assert_eq!(functions("trait T { fn a(&self); }\ntype F = fn(u8) -> u8;\nstruct S { f: fn() }"), []);
}

#[test]
fn what_stands_under_cfg_test_is_not_counted() {
    let source = "//! x\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
    assert_eq!(lines_without_tests(source), 3);
    assert_eq!(lines_without_tests("a\n#[cfg(test)]\nmod tests;\nb\n"), 2);
    assert_eq!(lines_without_tests("#[cfg(all(test, unix))]\nfn a(x: [u8; 2]) {\n}\n"), 0);
    assert_eq!(lines_without_tests("#[cfg(not(test))]\nfn a() {\n}\n"), 3);
    assert_eq!(lines_without_tests("#[cfg(test)]\n#[derive(Debug)]\nstruct A {\n    b: u8,\n}\n"), 0);
}
