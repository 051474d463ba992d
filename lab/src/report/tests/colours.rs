//! Arms are told apart by colours, marks and dashes.

use super::*;

#[test]
fn no_arm_has_the_colour_of_a_kind_of_frame_or_of_a_loss() {
    let html = html(&of_arms(9));
    let style = &html[..html.find("</style>").expect("a style")];
    let (kinds, arms) = style.split_once(".a0{--c:").expect("arms have colours");
    let colours = |text: &str| -> Vec<String> {
        let found = text.match_indices(":#").map(|(at, _)| text[at + 1..].split([';', '}']).next());
        found.flatten().map(str::to_owned).collect()
    };
    let shared: Vec<_> = colours(arms).into_iter().filter(|arm| colours(kinds).contains(arm)).collect();
    assert!(shared.is_empty(), "{shared:?}");
}

#[test]
fn arms_beyond_the_colours_have_other_marks_and_dashes_everywhere() {
    let html = html(&of_arms(17));
    let figure = figure(&html, "fig-goodput");
    for (arm, shape) in [("a0", "<circle"), ("a7", "<circle"), ("a8 s1", "<path"), ("a16 s2", "<path")] {
        assert!(figure.contains(&format!("{shape} class=\"mark {arm}\"")), "{arm}");
        assert!(html.contains(&format!("<label class=\"{arm}\"><input")), "{arm} above all");
        assert!(html.contains(&format!("<tr class=\"{arm}\"><th><i class=\"swatch\">")), "{arm} in tables");
    }
    let square = figure.split("class=\"mark a8 s1\" d=\"").nth(1).and_then(|rest| rest.split('"').next());
    assert_eq!(square.map(|path| path.matches('L').count()), Some(3), "{square:?}");
    for style in [".s1.line,.s1.whisker{stroke-dasharray", ".s2 .swatch{", ".s3.line,"] {
        assert!(html.contains(style), "{style}");
    }
}

#[test]
fn the_name_of_a_row_goes_with_its_arm() {
    let html = html(&bundle());
    for id in ["fig-ratios", "fig-goodput", "fig-acks"] {
        let figure = figure(&html, id);
        assert!(figure.contains("<text class=\"a1\" text-anchor=\"end\""), "{id}: {figure}");
    }
    assert!(html.contains("figure .a1{display:none}"), "which a switch hides");
}
