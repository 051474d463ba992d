//! The report of real runs, opened in a browser.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use hopwise_lab::campaign::Campaign;
use hopwise_lab::record::{Record, Trial};
use hopwise_lab::report::{Bundle, Series, html};
use hopwise_lab::result::RunResult;
use hopwise_lab::scenario::Scenario;
use hopwise_lab::scenario::point::{MatrixPoint, Stop};
use hopwise_lab::sim::{Simulation, series};

const SCENARIO: &str = "
topology: { kind: chain, hops: 6, spacing_m: 200 }
radio: { profile: dsss-2mbps, rts_threshold: 0 }
traffic: [{ from: first, to: last, kind: bulk, segment_bytes: 1000 }]
arms:
  every:   { receiver: immediate, sender: [newreno] }
  delayed: { receiver: delayed, sender: [newreno] }
  dca:     { receiver: dca, sender: [newreno, tell-cwnd] }
  tda:     { receiver: tda, sender: [newreno, tell-cwnd] }
run: { duration: 40s, warmup: 5s, seeds: 3 }
";
const ARMS: [&str; 4] = ["every", "delayed", "dca", "tda"];
const HOPS: [u32; 3] = [2, 4, 6];
const SEEDS: u64 = 3;

/// A trial as `hopwise trial` would leave it behind.
fn bundle() -> Bundle {
    let (mut records, mut shown) = (Vec::new(), BTreeMap::new());
    let point = |hops: u32| MatrixPoint::from([("topology.hops".to_owned(), hops.into())]);
    for hops in HOPS {
        let scenario =
            Scenario::parse("chain", SCENARIO, &[format!("topology.hops={hops}")]).expect("a scenario");
        for seed in 1..=SEEDS {
            for arm in ARMS {
                let prepared = scenario.plan(Some(arm), seed).expect("a plan");
                let mut simulation = Simulation::new(&prepared.plan).expect("a world");
                let text = series::run(&mut simulation, &prepared.names, series::FrameStretches::Keep);
                let id = format!("{hops}-{arm}-{seed}");
                if seed == 1 {
                    shown.insert(id.clone(), Series::parse(&text));
                }
                records.push(Record {
                    id,
                    scenario: "chain".into(),
                    point: point(hops),
                    arm: arm.into(),
                    seed,
                    block: seed as u32,
                    settings: serde_json::json!({ "topology": { "hops": hops }, "receiver": arm }).into(),
                    result: RunResult::new("chain", "sim", &prepared, &simulation.results()),
                    series: None,
                    series_sum: None,
                });
            }
        }
    }
    let trial = Trial {
        version: env!("CARGO_PKG_VERSION").into(),
        commit: None,
        certificate: "of a test".into(),
        scenario: "chain".into(),
        title: Some("ACK thinning on chains".into()),
        world: "sim".into(),
        arms: ARMS.map(str::to_owned).to_vec(),
        points: HOPS.map(point).to_vec(),
        arm_paths: Vec::new(),
        seeds: (1..=SEEDS).collect(),
        margin: 0.03,
        stop: Stop::AllSeeds,
        figures: vec!["goodput_kbps".to_owned()],
        shard: None,
    };
    Bundle::new(trial, records, shown)
}

fn figures() -> Vec<String> {
    let mut ids: Vec<String> =
        ["ratios", "goodput", "sweep", "acks", "airtime", "loads"].map(|name| format!("fig-{name}")).to_vec();
    for nth in 0..HOPS.len() {
        ids.extend([format!("fig-cwnd-{nth}-f0"), format!("fig-seq-{nth}-f0")]);
        ids.extend([format!("fig-queue-{nth}"), format!("fig-map-{nth}")]);
    }
    ids
}

/// The script of a hand on the slider, after the choice of what is played.
fn plays(chosen: &str) -> String {
    format!(
        "for (const player of document.querySelectorAll('.player')) {{
            const [select, range] = player.querySelectorAll('select, input');
            select.value = '{chosen}';
            select.dispatchEvent(new Event('change'));
            range.value = '500';
            range.dispatchEvent(new Event('input'));
        }}"
    )
}

fn browser() -> Option<&'static str> {
    let is_there =
        |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_there)
}

fn run_browser(browser: &str, profile: &Path, arguments: &[&str], file: &Path) -> (String, String) {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(arguments)
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_browser_shows_all_figures_and_meets_no_error() {
    let bundle = bundle();
    let page = html(&bundle);
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    for id in figures() {
        assert!(page.contains(&format!("<figure id=\"{id}\">")), "{id} is drawn");
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("report.html");
    std::fs::write(&file, &page).expect("a file");
    let Some(browser) = browser() else {
        println!("skipped: a report in a browser: no chromium (on Debian: apt-get install chromium)");
        return;
    };
    let profile = folder.join("profile");
    let (dom, log) = run_browser(browser, &profile, &["--dump-dom"], &file);
    assert!(dom.contains("data-ready=\"yes\""), "the script ran to its end: {log}");
    let errors: Vec<_> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(errors.is_empty(), "{errors:?}");
    for id in figures() {
        assert!(dom.contains(&format!("<figure id=\"{id}\">")), "{id} is in the page");
    }
    let players = dom.matches("class=\"player\"").count();
    assert_eq!((players, dom.matches(" hidden=\"\"").count()), (HOPS.len(), 0), "every map can be played");
    let still = |dom: &str| dom.matches("class=\"air\"></g>").count();
    assert_eq!(still(&dom), HOPS.len() * ARMS.len(), "nothing is on the air until somebody plays");
    assert_eq!(dom.matches("<option").count(), HOPS.len() * 9, "the whole run, and eight stretches");
    // The middle of a run of 40 s, and the middle of the fourth stretch.
    for (chosen, sees, at) in [("0", "class=\"busy\"", "20.0 s"), ("4", "class=\"f-", "75.0 ms")] {
        let played = page.replace("</body>", &format!("<script>{}</script></body>", plays(chosen)));
        std::fs::write(&file, played).expect("a file");
        let (dom, _) = run_browser(browser, &profile, &["--dump-dom"], &file);
        assert!(still(&dom) < HOPS.len(), "{} maps show nothing at {at}", still(&dom));
        let air: Vec<&str> = dom.split("class=\"air\">").skip(1).collect();
        assert!(air.iter().any(|air| air[..air.find("</g>").expect("its end")].contains(sees)), "{sees}");
        assert_eq!(dom.matches(&format!("{at}</output>")).count(), HOPS.len(), "{at}");
    }
    std::fs::write(&file, page).expect("a file");
    let _ = std::fs::remove_dir_all(&profile);
}

fn hopwise(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hopwise")).args(arguments).output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn the_quickstarts_report_can_be_made_again_to_the_byte_and_every_arm_has_its_reasons() {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("quickstart");
    let _ = std::fs::remove_dir_all(&root);
    let folder = |name: &str| root.join(name).display().to_string();
    let trial = |name: &str, more: &[&str]| {
        let out = folder(name);
        let short = ["--set", "run.duration=20s", "--set", "run.warmup=5s", "--out", &out];
        hopwise(&[&["trial", "configs/quickstart.yaml"], &short[..], more].concat())
    };
    let told = trial("whole", &[]);
    let report = root.join("whole").join("report.html");
    assert!(told.contains(&format!("{} shows it all", report.display())), "{told}");
    let first = std::fs::read(&report).expect("the trial has written it");
    hopwise(&["report", &folder("whole")]);
    assert!(first == std::fs::read(&report).expect("a report"), "the same records give the same bytes");
    for part in 1..=2 {
        trial(&format!("part-{part}"), &["--shard", &format!("{part}/2")]);
    }
    let joined = folder("joined.html");
    hopwise(&["report", &folder("part-2"), &folder("part-1"), "--out", &joined]);
    assert!(first == std::fs::read(&joined).expect("a report"), "parts come to the same as the whole");
    let reasons = hopwise(&["report", "--why", &folder("whole")]);
    let heads: Vec<_> = reasons.lines().next().expect("heads").split_whitespace().collect();
    assert!(heads.len() == 6 && heads[0] == "linux", "the baseline comes first: {reasons}");
    for row in ["goodput, kbit/s ", "against linux ", "ACKs a segment ", "collisions, of 100 segments "] {
        assert!(reasons.contains(&format!("\n{row}")), "{reasons}");
    }
    let _ = std::fs::remove_dir_all(&root);
}

/// Asks the page for a figure as it would save it, and puts it into the title.
const TAKEN: &str = "
    const { picture, numbers } = window.hopwiseReport;
    const of = (id) => document.getElementById(id);
    const sound = (id) => {
        const { text } = picture(of(id));
        const read = new DOMParser().parseFromString(text, 'image/svg+xml');
        return !read.querySelector('parsererror') && read.querySelectorAll('text').length > 3 && !/var\\(/.test(text);
    };
    const all = Array.from(document.querySelectorAll('figure'), (figure) => figure.id);
    const wrong = all.filter((id) => !sound(id));
    const lines = (id) => numbers(of(id)).trim().split('\\n');
    const bare = all.filter((id) => lines(id).length < 2);
    const keys = all.filter((id) => of(id).querySelector('.legend'));
    const lacks = keys.filter((id) => {
        const { text, height } = picture(of(id));
        const drawn = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
        const texts = [...drawn.querySelectorAll(':scope > text')];
        const swatches = [...drawn.querySelectorAll(':scope > rect')].slice(1);
        const kinds = [...of(id).querySelectorAll('.key')];
        const fills = swatches.map((swatch) => swatch.getAttribute('fill'));
        return swatches.length !== kinds.length || fills.includes(null)
            || texts.some((text) => Number(text.getAttribute('y')) > height)
            || !kinds.every((kind) => texts.some((text) => text.textContent === kind.textContent.trim()));
    });
    const names = (id) => lines(id).some((line) => line.startsWith('topology.hops = '));
    const pointless = all.filter((id) => id !== 'fig-topology' && !names(id));
    const first = (id, shape) => lines(id).find((line) => line.includes(',' + shape + ','));
    document.title = ['wrong: ' + wrong, 'bare: ' + bare, 'legends: ' + keys.length + ', lacking: ' + lacks,
        'without points: ' + pointless, lines('fig-goodput')[0], first('fig-goodput', 'run'),
        first('fig-goodput', 'mean'), first('fig-delay', 'mean'), first('fig-loads', 'bar')].join('; ');
";

#[test]
fn every_figure_can_be_taken_away_as_a_picture_and_as_numbers() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("taken");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("report.html");
    let page = html(&bundle());
    assert!(page.contains("<figure id=\"fig-topology\">"), "the nodes are drawn on top");
    let page = page.replace("</body>", &format!("<script>{TAKEN}</script></body>"));
    std::fs::write(&file, page).expect("a file");
    let Some(browser) = browser() else {
        println!("skipped: figures to take away: no chromium (on Debian: apt-get install chromium)");
        return;
    };
    let (dom, log) = run_browser(browser, &folder.join("profile"), &["--dump-dom"], &file);
    let buttons = dom.matches("class=\"take\"").count();
    assert_eq!(buttons, dom.matches("<figure id=").count(), "each has its buttons");
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).expect("a title");
    let parts: Vec<&str> = title.split("; ").collect();
    // Two of airtime, and queues and a map at each point.
    let legends = format!("legends: {}, lacking: ", 2 + 2 * HOPS.len());
    assert_eq!(parts[..4], ["wrong: ", "bare: ", &legends, "without points: "], "{title}: {log}");
    assert_eq!(parts[4], "point,arm,shape,x,y,x_low,x_high,y_low,y_high,seed,runs,what");
    let cells = |nth: usize| parts[nth].split(',').collect::<Vec<_>>();
    let known = |nth: usize| {
        let names = cells(4).into_iter().zip(cells(nth)).filter(|(_, cell)| !cell.is_empty());
        names.map(|(name, _)| name).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(cells(5)[..3], ["topology.hops = 2", "every", "run"]);
    assert_eq!(known(5), "point arm shape x seed what", "a run");
    assert_eq!(known(6), "point arm shape x x_low x_high runs what", "a mean");
    assert_eq!(known(7), "point arm shape x y x_low x_high y_low y_high runs what", "a dot of two means");
    assert_eq!(known(8), "point arm shape x x_low x_high what", "a bar");
    let _ = std::fs::remove_dir_all(folder.join("profile"));
}

/// Asks a page in a frame of a phone's width which verdicts it shows, and whether anything makes it wider.
const ON_A_PHONE: &str = "
    const frame = document.querySelector('iframe');
    frame.addEventListener('load', () => {
        const page = frame.contentDocument;
        const verdicts = [...page.querySelectorAll('.verdict')];
        const cut = verdicts.filter((verdict) => verdict.getBoundingClientRect().right > 390);
        const wide = page.documentElement.scrollWidth;
        document.title = verdicts.length + ' verdicts, ' + cut.length + ' cut, ' + wide + ' wide';
    });
";

#[test]
fn a_narrow_screen_shows_every_verdict() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("phone");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("phone.html");
    let page = html(&bundle()).replace('&', "&amp;").replace('"', "&quot;");
    // A browser's own window is never as narrow.
    let framed = format!(
        "<iframe width=390 height=800 scrolling=no srcdoc=\"{page}\"></iframe><script>{ON_A_PHONE}</script>"
    );
    std::fs::write(&file, framed).expect("a file");
    let Some(browser) = browser() else {
        println!("skipped: a report on a narrow screen: no chromium (on Debian: apt-get install chromium)");
        return;
    };
    let (dom, log) = run_browser(browser, &folder.join("profile"), &["--dump-dom"], &file);
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    let wanted = format!("{} verdicts, 0 cut, 390 wide", ARMS.len() * HOPS.len());
    assert_eq!(title, Some(&*wanted), "{log}");
    let _ = std::fs::remove_dir_all(&folder);
}

/// The text of a print on papers of that height, as `pdftotext` gives it with that option.
fn printed(browser: &str, page: &str, height_mm: u32, option: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("printed{option}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (file, pdf) = (folder.join("printed.html"), folder.join("printed.pdf"));
    let style = format!("@page{{size:210mm {height_mm}mm}}</style>");
    std::fs::write(&file, page.replacen("</style>", &style, 1)).expect("a file");
    let print = format!("--print-to-pdf={}", pdf.display());
    run_browser(browser, &folder.join("profile"), &["--no-pdf-header-footer", &print], &file);
    let text = Command::new("pdftotext").arg(option).arg(&pdf).arg("-").output().expect("it starts");
    let _ = std::fs::remove_dir_all(&folder);
    String::from_utf8_lossy(&text.stdout).into_owned()
}

fn printer() -> Option<&'static str> {
    let has_pdftotext = Command::new("pdftotext").arg("-v").output().is_ok();
    let found = browser().filter(|_| has_pdftotext);
    if found.is_none() {
        println!(
            "skipped: a printed report: no chromium or pdftotext (on Debian: apt-get install chromium poppler-utils)"
        );
    }
    found
}

#[test]
fn no_heading_of_figures_stands_alone_at_the_foot_of_a_printed_page() {
    let Some(browser) = printer() else { return };
    let page = html(&bundle());
    for height_mm in [260, 279, 297, 310, 330] {
        let text = printed(browser, &page, height_mm, "-layout");
        let last =
            |page: &str| page.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        let last: Vec<String> = text.split('\u{c}').filter_map(last).collect();
        assert!(last.len() > 5, "{height_mm} mm: {last:?}");
        let alone = |line: &&String| {
            ["Every arm", "Over time"].contains(&line.as_str()) || line.starts_with("The first seed's run")
        };
        let alone: Vec<_> = last.iter().filter(alone).collect();
        assert!(alone.is_empty(), "{height_mm} mm: {alone:?}");
    }
}

/// The share of a printed page above its lowest word, from the positions of its words.
fn filled(page: &str) -> f64 {
    let numbers = |name: &'static str| {
        page.split(name).skip(1).filter_map(|rest| rest.split('"').nth(1)?.parse::<f64>().ok())
    };
    let height = numbers(" height=").next().expect("a page has a height");
    numbers(" yMax=").fold(0.0, f64::max) / height
}

#[test]
fn no_figure_over_time_is_split_between_printed_pages() {
    let Some(browser) = printer() else { return };
    let page = html(&bundle());
    for height_mm in [260, 279, 297] {
        let text = printed(browser, &page, height_mm, "-raw");
        let mut figures = 0;
        for (title, caption) in [
            ("Window of f0", "The line is cwnd, the thin dashed one"),
            ("Progress of f0", "A line is what was acknowledged"),
            ("Interface queues", "A row is a node, from the first"),
        ] {
            for page in text.split('\u{c}') {
                let (begun, ended) = (page.matches(title).count(), page.matches(caption).count());
                assert_eq!(begun, ended, "{height_mm} mm, {title}: {page}");
                figures += begun;
            }
        }
        assert_eq!(figures, 3 * HOPS.len(), "{height_mm} mm");
    }
}

/// The same runs as twelve points of five arms.
fn twelve_points(few: &Bundle) -> Bundle {
    const QUEUES: [u32; 4] = [10, 20, 50, 100];
    let mut trial = few.trial.clone();
    trial.arms.push("again".to_owned());
    let at = |point: &MatrixPoint, packets: u32| {
        let mut point = point.clone();
        point.insert("radio.queue_packets".to_owned(), packets.into());
        point
    };
    trial.points =
        few.trial.points.iter().flat_map(|point| QUEUES.map(|packets| at(point, packets))).collect();
    let (mut records, mut shown) = (Vec::new(), BTreeMap::new());
    let mut keep = |of: &Record, arm: &str, packets: u32| {
        let id = format!("{}-{arm}-{packets}", of.id);
        shown.extend(few.series.get(&of.id).map(|series| (id.clone(), series.clone())));
        records.push(Record { id, arm: arm.to_owned(), point: at(&of.point, packets), ..of.clone() });
    };
    for record in &few.records {
        for packets in QUEUES {
            keep(record, &record.arm, packets);
            if record.arm == "dca" {
                keep(record, "again", packets);
            }
        }
    }
    Bundle::new(trial, records, shown)
}

#[test]
fn no_printed_page_but_the_last_is_left_half_empty() {
    let Some(browser) = printer() else { return };
    let few = bundle();
    for (points, page) in [(HOPS.len(), html(&few)), (12, html(&twelve_points(&few)))] {
        for height_mm in [260, 279, 297] {
            let text = printed(browser, &page, height_mm, "-bbox");
            let pages: Vec<f64> = text.split("<page").skip(1).map(filled).collect();
            assert!(pages.len() > 5, "{points} points, {height_mm} mm: {pages:?}");
            let is_filled = pages[..pages.len() - 1].iter().all(|filled| *filled > 0.5);
            assert!(is_filled, "{points} points, {height_mm} mm: {pages:?}");
        }
    }
}

/// The trial of the radios of today, with shorter runs. All runs at a point are one simulation, some with more goodput.
fn radios() -> Bundle {
    let sets = ["run.duration=6s", "run.warmup=1s"].map(str::to_owned);
    let scenario =
        Scenario::parse("radios", include_str!("../configs/radios.yaml"), &sets).expect("a scenario");
    let campaign = Campaign::new(&scenario, None, None).expect("a trial");
    let (mut made, mut records, mut shown) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
    for run in &campaign.runs {
        let (result, series): &(RunResult, Series) = made.entry(run.point).or_insert_with(|| {
            let prepared = campaign.prepare(run).expect("a plan");
            let mut simulation = Simulation::new(&prepared.plan).expect("a world");
            let text = series::run(&mut simulation, &prepared.names, series::FrameStretches::Leave);
            (RunResult::new("radios", "sim", &prepared, &simulation.results()), Series::parse(&text))
        });
        let mut result = result.clone();
        result.total.goodput_kbps *= 1.0 + 0.01 * ((run.arm * 7 + run.block as usize * 3) % 11) as f64;
        if run.block == 1 {
            shown.insert(run.id.clone(), series.clone());
        }
        records.push(campaign.record(run, result, None));
    }
    Bundle::new(campaign.trial, records, shown)
}

/// About the pixels of a page in a wide window: rows of open tables, open figures one below the other, and two lines
/// for each paragraph, heading and summary. A browser puts some figures beside each other, and breaks long texts.
fn height(page: &str) -> f64 {
    // Of the page's style: 13.2 px of text in lines of 1.5, 10 of padding and a rule in a row; figures by their width.
    const FIGURE: f64 = 560.0;
    const ROW: f64 = 31.0;
    const TEXT: f64 = 48.0;
    assert!(page.contains("th,td{padding:5px 10px;") && page.contains(&format!("max-width:{FIGURE}px")));
    let body = page.split_once("<body").map_or("", |(_, body)| body);
    let (mut folds, mut open) = (0, String::new());
    for letter in body.replace("<details", "\u{1}").replace("</details>", "\u{2}").chars() {
        match letter {
            '\u{1}' => {
                open += if folds == 0 { "<p>" } else { "" };
                folds += 1;
            }
            '\u{2}' => folds -= 1,
            _ if folds == 0 => open.push(letter),
            _ => {}
        }
    }
    let figures = open.split("viewBox=\"0 0 ").skip(1).filter_map(|figure| {
        let (wide, rest) = figure.split_once(' ')?;
        let (high, _) = rest.split_once('"')?;
        Some(FIGURE / wide.parse::<f64>().ok()? * high.parse::<f64>().ok()?)
    });
    let texts = ["<p>", "<p ", "<li>", "<h1>", "<h2>", "<h3>", "<h4>", "<figcaption>"]
        .map(|tag| open.matches(tag).count());
    figures.sum::<f64>()
        + ROW * open.matches("<tr").count() as f64
        + TEXT * texts.iter().sum::<usize>() as f64
}

/// A mail takes a file of 3 MB, and a browser opens it at once.
#[test]
fn a_report_of_32_arms_at_eight_points_stays_short_and_keeps_every_number() {
    let bundle = radios();
    let (points, arms, seeds) =
        (bundle.trial.points.len(), bundle.trial.arms.len(), bundle.trial.seeds.len());
    assert_eq!((points, arms, seeds), (8, 32, 3));
    let page = html(&bundle);
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert!(height(&page) < 8_000.0, "{} px", height(&page));
    let (_, figure) = page.split_once("<figure id=\"fig-airtime\">").expect("airtime");
    let (figure, _) = figure.split_once("</figure>").expect("its end");
    let (drawn, told) = (figure.matches("<rect class=\"kind ").count(), figure.matches("bar|kind ").count());
    assert_eq!(told, points * arms * 10, "a row for each kind");
    assert!(drawn < told && !figure.contains("width=\"0.0\""), "{drawn} bars");
    let pointed = "<title>cubic-delayed, hops = 1, kind = drop-tail: sends data ";
    assert!(figure.contains(pointed), "a bar names its arm and point to a user who points at it");
}

/// The part of the page's script that makes the numbers of a figure, over a figure and arms of this test.
const NUMBERS: &str = "
    const names = ['=1+1', '-2', '＝2', 'x; =1;-2;y\\t@A'];
    const document = { querySelectorAll: () => names.map((name) => ({ textContent: name })) };
    const rows = ['run|mark a0|-2.5||+so|2', 'run|mark a1|1||a \"b\", c|2', 'run|mark a2|1', 'run|mark a3|1'];
    const numbered = { numbers: ['=point|@A1', ...rows].join('\\n') };
    const svg = { dataset: numbered, getAttribute: () => '' };
    const figure = { closest: () => null, querySelectorAll: () => [svg] };
    const headingOf = () => '';
";

#[test]
fn a_spreadsheet_takes_no_name_in_a_figures_numbers_for_a_formula() {
    let page = html(&bundle());
    let from = page.find("const COLUMNS =").expect("the page makes numbers");
    let length = page[from..].find("function save(").expect("a function follows");
    let script = format!("{NUMBERS}{};console.log(numbers(figure))", &page[from..from + length]);
    let Ok(output) = Command::new("node").args(["-e", &script]).output() else {
        println!("skipped: a figure's numbers: no node (on Debian: apt-get install nodejs)");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: Vec<_> = text.lines().skip(1).collect();
    let wanted = [
        "\"'@A1\",\"'=1+1\",run,-2.5,,2,,,,,,\"'+so\"",
        "\"'@A1\",-2,run,1,,2,,,,,,\"a \"\"b\"\", c\"",
        "\"'@A1\",\"'＝2\",run,1,,,,,,,,",
        "\"'@A1\",\"x;' =1;'-2;y\t'@A\",run,1,,,,,,,,",
    ];
    assert_eq!(rows[..4], wanted, "{text}{}", String::from_utf8_lossy(&output.stderr));
}
