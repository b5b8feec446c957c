//! The screen in the documentation and the picture in the README: what the program shows, recorded.

use crate::interactive::{Screen, interactive, prepared};

const DAY: &str = "
replies:
  - text: I look at the note first.
    calls: [{read: notes.txt}]
  - text: It is **out of date**, so I remove it.
    calls: [{bash: rm notes.txt}]
  - say: \"Done:\\n\\n- `notes.txt` was out of date\\n- it is gone now\"
";

/// The screen in docs/terminal.md and the picture in the README are what the program shows. Where it shows
/// something new, `WINDLASS_RECORD=1` writes them.
#[test]
fn the_documented_screen_is_the_real_one() {
    let program = prepared(DAY);
    std::fs::create_dir(program.workspace().join("shop")).unwrap();
    std::fs::rename(
        program.workspace().join("notes.txt"),
        program.workspace().join("shop/notes.txt"),
    )
    .unwrap();
    let mut command = interactive(&program, &[]);
    command.current_dir(program.workspace().join("shop"));
    let mut screen = Screen::start(command, 80, 32);
    screen.until("windlass chat | manual");
    screen.says("Is notes.txt still of use? Remove it if not.");
    screen.until("❯ 1. Allow");
    screen.types("1");
    screen.until("it is gone now");
    screen.until("waiting for you");
    screen.types("Thanks. What else is old here?");
    screen.until("What else is old here?");
    let shown = masked(&screen.parser.screen().contents());
    let picture = picture(screen.parser.screen());
    screen.types("\u{3}");
    screen.leave();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/terminal.md")).unwrap();
    let (before, rest) = page.split_once("```\n").unwrap();
    let (recorded, after) = rest.split_once("```\n").unwrap();
    if std::env::var_os("WINDLASS_RECORD").is_some() {
        std::fs::write(root.join("docs/terminal.md"), format!("{before}```\n{shown}```\n{after}"))
            .unwrap();
        std::fs::write(root.join("docs/terminal.svg"), &picture).unwrap();
        return;
    }
    assert_eq!(recorded, shown, "docs/terminal.md shows another screen");
    let kept = std::fs::read_to_string(root.join("docs/terminal.svg")).unwrap();
    assert_eq!(kept, picture, "docs/terminal.svg shows another screen");
}

/// The screen without what differs from run to run: how much was used.
fn masked(contents: &str) -> String {
    let lines = contents.lines().map(|line| match line.split_once(" · ") {
        Some((first, _)) if first.starts_with("waiting") => {
            format!("{first} · 4.1k tokens · context 3 %")
        }
        _ => line.trim_end().to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned() + "\n"
}

/// The screen as a picture.
fn picture(screen: &vt100::Screen) -> String {
    const WIDTH: f32 = 8.43;
    const HEIGHT: usize = 18;
    let (rows, columns) = screen.size();
    let plain = masked(&screen.contents());
    let count = plain.lines().count();
    let contents = screen.contents();
    let first = contents.lines().take_while(|line| line.trim().is_empty()).count();
    let (wide, high) = ((f32::from(columns) * WIDTH) as usize + 32, count * HEIGHT + 32);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" width=\"{wide}\" height=\"{high}\">\n\
         <title>windlass in a terminal</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1d2026\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\" fill=\"#d5d8df\" xml:space=\"preserve\">\n"
    );
    for row in 0..rows {
        let Some(at) = usize::from(row).checked_sub(first).filter(|at| *at < count) else {
            continue;
        };
        let line = plain.lines().nth(at).unwrap_or_default();
        let y = 16 + (at + 1) * HEIGHT - 4;
        let is_status = line.starts_with("waiting");
        let mut runs: Vec<(String, u16, String)> = Vec::new();
        for column in 0..columns {
            let Some(cell) = screen.cell(row, column).filter(|_| !is_status) else { break };
            let style = style(cell);
            let text =
                if cell.has_contents() { cell.contents().to_owned() } else { " ".to_owned() };
            match runs.last_mut() {
                Some((same, _, run)) if *same == style => run.push_str(&text),
                _ => runs.push((style, column, text)),
            }
        }
        if is_status {
            runs.push(("fill=\"#8b93a1\"".to_owned(), 0, line.to_owned()));
        }
        for (style, column, text) in runs.iter().filter(|(_, _, text)| !text.trim().is_empty()) {
            let x = 16.0 + f32::from(*column) * WIDTH;
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            svg += &format!("<text x=\"{x:.1}\" y=\"{y}\" {style}>{}</text>\n", text.trim_end());
        }
    }
    svg + "</g>\n</svg>\n"
}

fn style(cell: &vt100::Cell) -> String {
    let fill = match cell.fgcolor() {
        vt100::Color::Idx(1) => "#e06c75",
        vt100::Color::Idx(2) => "#98c379",
        vt100::Color::Idx(3) => "#e5c07b",
        vt100::Color::Idx(5) => "#c678dd",
        vt100::Color::Idx(6) => "#56b6c2",
        _ if cell.dim() => "#8b93a1",
        _ => "#d5d8df",
    };
    let weight = if cell.bold() { " font-weight=\"bold\"" } else { "" };
    format!("fill=\"{fill}\"{weight}")
}
