//! Reads the text form of the table. What it says is explained in the parent module.

use windlass_core::policy::class::{Class, Risk};

use super::{Files, Program, Row, Style};

/// Every program of a text; else the line that is wrong, and why.
pub(super) fn programs(text: &'static str) -> Result<Vec<Program>, String> {
    let mut programs: Vec<Program> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let Some(detail) = line.strip_prefix("  ") else {
            match programs.last_mut().filter(|program| program.rows.is_empty()) {
                Some(program) => program.names.extend(line.split_whitespace()),
                None => programs.push(program(line)),
            }
            continue;
        };
        let Some(program) = programs.last_mut() else {
            return Err(format!("`{detail}` belongs to no program"));
        };
        add(program, detail).map_err(|wrong| format!("`{line}`: {wrong}"))?;
    }
    Ok(programs)
}

fn program(line: &'static str) -> Program {
    Program {
        names: line.split_whitespace().collect(),
        values: "",
        outputs: "",
        style: Style::Bundled,
        files: Files::None,
        rows: Vec::new(),
    }
}

fn add(program: &mut Program, detail: &'static str) -> Result<(), String> {
    if let Some(values) = detail.strip_prefix("values: ") {
        program.values = values;
    } else if let Some(outputs) = detail.strip_prefix("outputs: ") {
        program.outputs = outputs;
    } else if let Some(files) = detail.strip_prefix("files: ") {
        program.files = files_of(files)?;
    } else if detail == "options: one dash" {
        program.style = Style::OneDash;
    } else {
        program.rows.push(row(detail)?);
    }
    Ok(())
}

fn files_of(text: &str) -> Result<Files, String> {
    match text {
        "reads" => Ok(Files::Reads),
        "writes" => Ok(Files::Writes),
        "writes last" => Ok(Files::WritesLast),
        "moves" => Ok(Files::Moves),
        "removes" => Ok(Files::Removes),
        other => Err(format!("`{other}` says nothing about files")),
    }
}

/// `class [risk] | pattern | reason`.
pub(super) fn row(text: &'static str) -> Result<Row, String> {
    let mut columns = text.split(" | ").map(str::trim);
    let mut column = || columns.next().ok_or("a row has three columns");
    let (head, pattern, reason) = (column()?, column()?, column()?);
    if columns.next().is_some() || reason.is_empty() {
        return Err("a row has three columns, and a reason in the last".to_owned());
    }
    let (class, risk) = class_and_risk(head)?;
    Ok(Row { pattern, class, risk, reason })
}

/// A class may have two words (`local command`); a risk is one word in capitals.
fn class_and_risk(text: &str) -> Result<(Class, Option<Risk>), String> {
    let parse = |class: &str| class.parse::<Class>().map_err(|error| error.to_string());
    match text.rsplit_once(' ') {
        Some((class, last)) if last.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            let risk = last.parse::<Risk>().map_err(|error| error.to_string())?;
            Ok((parse(class)?, Some(risk)))
        }
        _ => Ok((parse(text)?, None)),
    }
}
