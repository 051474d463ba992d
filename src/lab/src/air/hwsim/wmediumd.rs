//! Configurations of wmediumd: the stations and links of one as a scenario and a recorded field of ours.

use std::f64::consts::PI;
use std::fmt::Write;
use std::path::Path;

use hopwise_air::channel::recording::{RecordedLink, head};
use hopwise_air::frames::Mac;
use hopwise_core::StationAddress;

use super::MOST;
use super::field::MHZ;

/// wmediumd's noise, and the SNR of links that its configuration does not name.
const NOISE_DBM: f64 = -91.0;
const USUAL_SNR_DB: f64 = 30.0;
/// The time of the last rows, in seconds: as long as a field may go on between two rows.
const LASTS_S: f64 = 10_800.0;
/// The power of links that lose frames by a share alone.
const STRONG_DBM: f64 = -50.0;

/// The groups in groups and lists in lists that a file may have.
const DEEPEST: usize = 32;

/// The line of a problem, from 1, and the problem.
pub(super) type Problem = (usize, String);

/// A setting of libconfig's language.
#[derive(Clone, Debug, PartialEq)]
enum Setting {
    Number(f64),
    Text(String),
    List(Vec<Setting>),
    Group(Vec<(String, usize, Setting)>),
}

impl Setting {
    /// The setting of that name in a group, with its line.
    fn get(&self, name: &str) -> Option<(usize, &Setting)> {
        let Setting::Group(all) = self else { return None };
        all.iter().find(|(known, _, _)| known == name).map(|(_, line, setting)| (*line, setting))
    }

    fn number(&self) -> Option<f64> {
        if let Setting::Number(number) = self { Some(*number) } else { None }
    }

    fn text(&self) -> Option<&str> {
        if let Setting::Text(text) = self { Some(text) } else { None }
    }

    /// Lists of numbers in a list, each with this many.
    fn rows<const N: usize>(&self) -> Option<Vec<[f64; N]>> {
        let Setting::List(rows) = self else { return None };
        let row = |row: &Setting| match row {
            Setting::List(row) => {
                row.iter().map(Setting::number).collect::<Option<Vec<_>>>()?.try_into().ok()
            }
            _ => None,
        };
        rows.iter().map(row).collect()
    }
}

/// Reads libconfig's language, as far as wmediumd's files use it.
struct Reader<'a> {
    rest: &'a str,
    line: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn wrong<T>(&self, expected: &str) -> Result<T, Problem> {
        let found = self.rest.split_whitespace().next().unwrap_or("the end of the file");
        Err((self.line, format!("`{found}`, expected {expected}")))
    }

    fn pass(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at(bytes);
        self.line += passed.matches('\n').count();
        self.rest = rest;
    }

    /// Passes blanks and comments, and returns the next character.
    fn next(&mut self) -> Option<char> {
        loop {
            self.pass(self.rest.len() - self.rest.trim_start().len());
            let end = match self.rest {
                rest if rest.starts_with('#') || rest.starts_with("//") => rest.find('\n'),
                rest if rest.starts_with("/*") => rest.find("*/").map(|at| at + 2),
                rest => return rest.chars().next(),
            };
            self.pass(end.unwrap_or(self.rest.len()));
        }
    }

    fn word(&mut self) -> &'a str {
        let is_part = |c: char| c.is_alphanumeric() || "_-+.*".contains(c);
        let (word, _) = self.rest.split_at(self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len()));
        self.pass(word.len());
        word
    }

    fn group(&mut self) -> Result<Setting, Problem> {
        let mut all = Vec::new();
        loop {
            match self.next() {
                None | Some('}') => return Ok(Setting::Group(all)),
                Some(';' | ',') => self.pass(1),
                Some(_) => {
                    let (line, name) = (self.line, self.word().to_owned());
                    if name.is_empty() || !matches!(self.next(), Some(':' | '=')) {
                        return self.wrong("a setting, such as `type = \"snr\";`");
                    }
                    self.pass(1);
                    all.push((name, line, self.setting()?));
                }
            }
        }
    }

    fn setting(&mut self) -> Result<Setting, Problem> {
        if self.depth > DEEPEST {
            return self.wrong("fewer groups and lists within each other");
        }
        match self.next() {
            Some('{') => {
                self.pass(1);
                self.depth += 1;
                let group = self.group()?;
                self.depth -= 1;
                if self.next() != Some('}') {
                    return self.wrong("`}`");
                }
                self.pass(1);
                Ok(group)
            }
            Some('(' | '[') => self.list(),
            Some('"') => match self.rest[1..].split_once('"') {
                Some((text, _)) => {
                    self.pass(text.len() + 2);
                    Ok(Setting::Text(text.to_owned()))
                }
                None => self.wrong("a closing quote"),
            },
            _ => {
                let before = self.rest;
                scalar(self.word()).map_or_else(
                    || {
                        self.rest = before;
                        self.wrong("a number, a text in quotes, or a list")
                    },
                    Ok,
                )
            }
        }
    }

    fn list(&mut self) -> Result<Setting, Problem> {
        self.pass(1);
        self.depth += 1;
        let mut all = Vec::new();
        loop {
            match self.next() {
                Some(')' | ']') => {
                    self.pass(1);
                    self.depth -= 1;
                    return Ok(Setting::List(all));
                }
                Some(',') => self.pass(1),
                None => return self.wrong("`)` or `]`"),
                Some(_) => all.push(self.setting()?),
            }
        }
    }
}

/// A switch, or a number: whole, long, hexadecimal or with a fraction.
fn scalar(word: &str) -> Option<Setting> {
    if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false") {
        return Some(Setting::Text(word.to_owned()));
    }
    let word = word.trim_end_matches('L');
    let number = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => f64::from(i32::from_str_radix(digits, 16).ok()?),
        None => word.parse().ok()?,
    };
    number.is_finite().then_some(Setting::Number(number))
}

/// A configuration as a scenario, and its field for a file beside it.
#[derive(Debug)]
pub(super) struct ReadMedium {
    pub(super) scenario: String,
    pub(super) field: String,
    /// The addresses of its stations.
    pub(super) macs: Vec<Mac>,
}

/// The power and the share of lost frames of each link, from and to a station.
struct Links {
    count: usize,
    all: Vec<Option<(f64, f64)>>,
}

impl Links {
    /// Links of rows `(from, to, value)`, in both directions or in the first alone.
    fn set(
        &mut self,
        rows: &[[f64; 3]],
        is_both: bool,
        link: impl Fn(f64) -> Option<(f64, f64)>,
    ) -> Option<()> {
        for [from, to, value] in rows {
            let station = |number: f64| (0..self.count).find(|nth| *nth as f64 == number);
            let (from, to) = (station(*from)?, station(*to)?);
            self.all[from * self.count + to] = link(*value);
            if is_both {
                self.all[to * self.count + from] = link(*value);
            }
        }
        Some(())
    }
}

/// Reads a configuration. The scenario names the file of the field.
pub(super) fn read(text: &str, field: &Path) -> Result<ReadMedium, Problem> {
    let mut reader = Reader { rest: text.trim_start_matches('\u{feff}'), line: 1, depth: 0 };
    let all = reader.group()?;
    if reader.next().is_some() {
        return reader.wrong("the end of the file");
    }
    known(&all, &["ifaces", "model"])?;
    let missing =
        |line| (line, "no list ifaces.ids, expected the addresses of two stations or more".to_owned());
    let (line, ifaces) = all.get("ifaces").ok_or_else(|| missing(1))?;
    known(ifaces, &["ids", "links", "enable_interference"])?;
    let Some((line, Setting::List(ids))) = ifaces.get("ids") else { return Err(missing(line)) };
    match ids.len() {
        0 | 1 => return Err(missing(line)),
        2..=MOST => {}
        count => return Err((line, format!("{count} stations, expected at most {MOST}"))),
    }
    let macs = addresses(ids).map_err(|problem| (line, problem))?;
    let none = Setting::List(Vec::new());
    let (line, model) = all.get("model").unwrap_or((line, &none));
    let links = links(ids.len(), ifaces, model)?;
    written(&links, field, macs)
        .ok_or_else(|| (line, "no link carries frames, expected one or more".to_owned()))
}

/// The addresses of stations, each of which has its own.
fn addresses(ids: &[Setting]) -> Result<Vec<Mac>, String> {
    let mut macs = Vec::new();
    for id in ids {
        let id = id.text().unwrap_or_default();
        match id.parse() {
            Ok(StationAddress(mac)) if mac[0] & 1 == 0 && !macs.contains(&mac) => macs.push(mac),
            _ => return Err(format!("station \"{id}\", expected a new address such as 02:00:00:00:01:00")),
        }
    }
    Ok(macs)
}

/// Refuses settings that would have no effect.
fn known(group: &Setting, names: &[&str]) -> Result<(), Problem> {
    let Setting::Group(all) = group else { return Ok(()) };
    match all.iter().find(|(name, _, _)| !names.contains(&name.as_str())) {
        Some((name, line, _)) => {
            Err((*line, format!("`{name}` is not read, expected one of: {}", names.join(", "))))
        }
        None => Ok(()),
    }
}

/// The number of that name, or the usual one.
fn number(model: &Setting, name: &str, usual: f64) -> Result<f64, Problem> {
    let Some((line, setting)) = model.get(name) else { return Ok(usual) };
    setting.number().ok_or_else(|| (line, format!("{name}, expected a number")))
}

fn links(count: usize, ifaces: &Setting, model: &Setting) -> Result<Links, Problem> {
    let (line, kind) = model.get("type").map_or((1, "snr"), |(line, kind)| (line, kind.text().unwrap_or("")));
    let rows = model.get("links").or_else(|| ifaces.get("links"));
    let (rows_at, rows) = rows.map_or((line, Some(Vec::new())), |(line, rows)| (line, rows.rows()));
    let bad = || (rows_at, format!("expected rows (from, to, value) with stations from 0 to {}", count - 1));
    let rows = rows.ok_or_else(bad)?;
    let filled = |link| Links { count, all: vec![link; count * count] };
    let by_snr = |snr: f64| Some((NOISE_DBM + snr, 0.0));
    let by_loss = |loss: f64| (loss < 1.0).then_some((STRONG_DBM, loss));
    match kind {
        "snr" => {
            known(model, &["type", "links"])?;
            let mut links = filled(by_snr(USUAL_SNR_DB));
            links.set(&rows, true, by_snr).ok_or_else(bad).map(|()| links)
        }
        "prob" | "prob_asymmetric" => {
            known(model, &["type", "links", "default_prob"])?;
            let usual = number(model, "default_prob", 1.0)?;
            if let Some(share) =
                rows.iter().map(|row| row[2]).chain([usual]).find(|share| !(0.0..=1.0).contains(share))
            {
                return Err((rows_at, format!("a share of {share}, expected 0 to 1")));
            }
            let mut links = filled(by_loss(usual));
            links.set(&rows, kind == "prob", by_loss).ok_or_else(bad).map(|()| links)
        }
        "path_loss" => by_places(count, model, line),
        _ => Err((line, format!("type \"{kind}\", expected snr, prob, prob_asymmetric or path_loss"))),
    }
}

/// The links between stations that stand still, by wmediumd's free space or logarithmic distance.
fn by_places(count: usize, model: &Setting, line: usize) -> Result<Links, Problem> {
    known(model, &["type", "positions", "directions", "tx_powers", "model_name", "path_loss_exp", "xg"])?;
    let places = model.get("positions").and_then(|(_, places)| places.rows::<2>());
    let places = places.filter(|places| places.len() == count);
    let places =
        places.ok_or_else(|| (line, format!("path_loss, expected positions of {count} stations")))?;
    let moves = model.get("directions").map(|(line, moves)| (line, moves.rows::<2>()));
    let stand = |moves: &Option<Vec<[f64; 2]>>| moves.iter().flatten().flatten().all(|step| *step == 0.0);
    if let Some((line, _)) = moves.filter(|(_, moves)| moves.is_none() || !stand(moves)) {
        let problem =
            "stations that move, expected directions of 0: a scenario with a file of movements moves them";
        return Err((line, problem.to_owned()));
    }
    let exponent = match model.get("model_name").map(|(line, name)| (line, name.text().unwrap_or(""))) {
        Some((_, "log_distance")) => number(model, "path_loss_exp", 3.5)?,
        Some((_, "free_space")) | None => 2.0,
        Some((line, name)) => {
            return Err((line, format!("model \"{name}\", expected log_distance or free_space")));
        }
    };
    let powers = match model.get("tx_powers") {
        Some((line, Setting::List(powers))) => {
            let powers: Vec<_> = powers.iter().filter_map(Setting::number).collect();
            let is_whole = powers.len() == count;
            is_whole
                .then_some(powers)
                .ok_or_else(|| (line, format!("tx_powers, expected {count} numbers")))?
        }
        Some((line, _)) => return Err((line, format!("tx_powers, expected a list of {count} numbers"))),
        None => vec![15.0; count],
    };
    let at_one_metre =
        20.0 * (4.0 * PI * f64::from(MHZ) * 1e6 / 299_792_458.0).log10() + number(model, "xg", 0.0)?;
    let link = |from: usize, to: usize| {
        let distance = f64::hypot(places[from][0] - places[to][0], places[from][1] - places[to][1]).max(1.0);
        Some((powers[from] - at_one_metre - 10.0 * exponent * distance.log10(), 0.0))
    };
    Ok(Links { count, all: (0..count * count).map(|nth| link(nth / count, nth % count)).collect() })
}

/// None if no link carries frames.
fn written(links: &Links, file: &Path, macs: Vec<Mac>) -> Option<ReadMedium> {
    let name = |nth: usize| format!("n{nth}");
    let mut field = head(3_600.0, &(0..links.count).map(name).collect::<Vec<_>>());
    let pair = |nth: usize| (nth / links.count, nth % links.count);
    let carrying = || {
        let all = links.all.iter().enumerate().filter_map(|(nth, link)| Some((pair(nth), (*link)?)));
        all.filter(|((from, to), _)| from != to)
    };
    for time_s in [0.0, LASTS_S] {
        for ((from, to), (dbm, _)) in carrying() {
            let link = RecordedLink {
                time_s,
                from: name(from),
                to: name(to),
                signal_dbm: Some(dbm.clamp(-127.0, 0.0).round()),
                noise_dbm: Some(NOISE_DBM),
                ..RecordedLink::default()
            };
            let _ = writeln!(field, "{link}");
        }
    }
    // A scenario has a flow, which programs of the user do not see.
    let ((from, to), _) = carrying().max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))?;
    let losing = carrying().filter(|(_, (_, loss))| *loss > 0.0);
    let loses = |((from, to), (_, loss)): ((usize, usize), (f64, f64))| {
        format!("link n{from}->n{to} loses {:.3}%", loss * 100.0)
    };
    let losses: Vec<_> = losing.map(loses).collect();
    let scenario = format!(
        "topology: {{ kind: chain, hops: {}, spacing_m: 1 }}\n\
         radio: {{ profile: ofdm-6mbps, rate: minstrel, rts_threshold: off }}\n\
         channel: {{ trace: {:?}, noise_dbm: {NOISE_DBM}, links: {losses:?} }}\n\
         traffic: [{{ from: n{from}, to: n{to}, kind: bulk }}]\n\
         arms: {{ any: {{ receiver: delayed, sender: [newreno] }} }}\n\
         run: {{ duration: 60s }}\n",
        links.count - 1,
        file.display().to_string()
    );
    Some(ReadMedium { scenario, field, macs })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: &str = "ifaces :\n{\n\tids = [ \"02:00:00:00:00:00\", \"02:00:00:00:01:00\", # two\n\
                       \t\t\"02:00:00:00:02:00\" ];\n";

    fn rows(text: &str) -> (Vec<String>, String) {
        let medium = read(text, Path::new("f.csv")).expect("a medium");
        let rows = medium.field.lines().skip(3).take_while(|row| row.starts_with("0.000"));
        let rows = rows.map(|row| row.trim_end_matches(',').to_owned()).collect();
        (rows, medium.scenario)
    }

    #[test]
    fn links_have_the_signal_of_their_snr_in_both_directions_and_further_links_that_of_30_db() {
        let (rows, scenario) = rows(&format!("{IDS}\tlinks = ((0, 1, 0), (2, 1, 20));\n}};"));
        let expected = [
            "0.000,n0,n1,-91.000,-91.0",
            "0.000,n0,n2,-61.000,-91.0",
            "0.000,n1,n0,-91.000,-91.0",
            "0.000,n1,n2,-71.000,-91.0",
            "0.000,n2,n0,-61.000,-91.0",
            "0.000,n2,n1,-71.000,-91.0",
        ];
        assert_eq!(rows, expected);
        assert!(scenario.contains("hops: 2,") && scenario.contains("links: []"), "{scenario}");
        let medium = read(&format!("{IDS}}};"), Path::new("f.csv")).expect("a medium");
        assert_eq!(medium.macs, [0, 1, 2].map(|nth| [2, 0, 0, 0, nth, 0]));
    }

    #[test]
    fn a_share_of_one_parts_stations_and_a_smaller_share_loses_frames_in_its_directions() {
        let model = |kind: &str| {
            format!(
                "{IDS}}};\nmodel: {{ type = \"{kind}\"; default_prob = 1.0; links = ((0, 2, 0.2), (1, 2, 0)); }};"
            )
        };
        let (both, scenario) = rows(&model("prob"));
        assert_eq!(both.len(), 4);
        assert!(
            scenario.contains(r#"["link n0->n2 loses 20.000%", "link n2->n0 loses 20.000%"]"#),
            "{scenario}"
        );
        let (forth, scenario) = rows(&model("prob_asymmetric"));
        assert_eq!(forth, ["0.000,n0,n2,-50.000,-91.0", "0.000,n1,n2,-50.000,-91.0"]);
        assert!(scenario.contains(r#"["link n0->n2 loses 20.000%"]"#), "{scenario}");
    }

    #[test]
    fn places_have_the_loss_of_their_distance() {
        let model = "model : { type = \"path_loss\"; positions = ((-50.0, 0.0), (0.0, 0.0), (50, 0));\n\
                     directions = ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0));\ntx_powers = (15.0, 15, 0xA # last\n);\n\
                     model_name = \"log_distance\"\n path_loss_exp = 3.5\n xg = 0L };";
        let (rows, _) = rows(&format!("{IDS}}};\n/* places */ {model}"));
        // 40.1 dB over the first metre, and 59.5 or 70 dB over the further ones.
        assert_eq!(rows[..2], ["0.000,n0,n1,-85.000,-91.0", "0.000,n0,n2,-95.000,-91.0"]);
        assert_eq!(rows[4..], ["0.000,n2,n0,-100.000,-91.0", "0.000,n2,n1,-90.000,-91.0"]);
    }

    #[test]
    fn bad_files_have_an_error_with_its_line() {
        let wrong =
            |text: &str| read(text, Path::new("f.csv")).map(|medium| medium.field).expect_err("it is bad");
        for (text, line, words) in [
            (String::new(), 1, "no list ifaces.ids"),
            (format!("{IDS}\tlinks = ((0, 1, high));\n}};"), 5, "`high));`, expected a number"),
            (format!("{IDS}\tlinks = ((0, 7, 3));\n}};"), 5, "stations from 0 to 2"),
            (format!("{IDS}}};\nmodel: {{\n\ttype = \"magic\"; }};"), 7, "expected snr, prob"),
            (format!("{IDS}}};\nmodel: {{ type = \"path_loss\"; }};"), 6, "positions of 3 stations"),
            (IDS.to_owned(), 5, "`the end of the file`, expected `}`"),
            ("ifaces { }".to_owned(), 1, "expected a setting"),
            (format!("a = {}", "(".repeat(100_000)), 1, "fewer groups and lists"),
            (
                format!("ifaces: {{ ids = [{}];\n}};", "\"a\", ".repeat(65)),
                1,
                "65 stations, expected at most 64",
            ),
            (
                format!("{IDS}}};\nmodel: {{ type = \"prob\";\nlinks = ((0, 1, 1.5)); }};"),
                7,
                "a share of 1.5",
            ),
            (format!("{IDS}}};\nmodel: {{ type = \"prob\";\nfading_coefficient = 1; }};"), 7, "is not read"),
            (format!("{IDS}}};\nmodel: {{ type = \"prob\"; }};"), 6, "no link carries frames"),
            ("ifaces: { ids = [ \"02".to_owned(), 1, "a closing quote"),
            (
                "ifaces: {\nids = [\"02:00:00:00:00:00\", \"02:00:00:00:00:00\"]; };".to_owned(),
                2,
                "station \"02:00:00:00:00:00\", expected a new address",
            ),
        ] {
            let (at, said) = wrong(&text);
            assert!(said.contains(words) && at == line, "{text}: {at}: {said}");
        }
    }
}
