//! Reading a completion contract: every error names the place.
//!
//! Invariants:
//! - A contract that was read is whole: every path in it lies inside the workspace, every check has a command or a
//!   name that is known.
//! - Reading one runs nothing and looks at nothing but its text.

use serde_json::{Map, Value};
use windlass_core::contract::{
    Audit, Check, CommitmentRules, Contract, MAX_CHECK_SECONDS, is_known, known_checks,
};

use crate::Document;
use crate::document::{item_path, key_path};

/// Checks of one contract; each runs after every final reply.
const MAX_CHECKS: usize = 50;

/// Why a text is not a contract.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line}: {}{problem}", place_words(.place))]
pub struct ContractError {
    /// The line, from 1.
    pub line: u32,
    /// The path in the JSON, such as `checks.test.command`; empty for the whole.
    pub place: String,
    pub problem: String,
}

fn place_words(place: &str) -> String {
    match place.is_empty() {
        true => String::new(),
        false => format!("`{place}` "),
    }
}

/// The version of the format.
const VERSION: &str = "2.0";

const KEYS: &[&str] = &[
    "$schema",
    "version",
    "name",
    "tier",
    "required_files",
    "checks",
    "commitments",
    "mentu",
    "audit",
    "max_iterations",
];
const CHECK_KEYS: &[&str] = &["command", "timeout_seconds"];
const COMMITMENT_KEYS: &[&str] =
    &["enabled", "mode", "min_count", "require_closed", "require_evidence"];

/// Reads a contract file.
pub fn read_contract(text: &str) -> Result<Contract, ContractError> {
    let document = Document::parse("", text).map_err(|problems| {
        let first = problems.0.into_iter().next();
        let (line, problem) = first.map_or((1, String::new()), |one| (one.line, one.message));
        ContractError { line, place: String::new(), problem }
    })?;
    let mut reader = ContractReader { document: Some(&document), path: String::new() };
    reader.contract(&document.value)
}

/// Reads a contract that is a part of another document. That one knows the lines; the place counts from here.
pub fn contract_from_value(value: &Value) -> Result<Contract, ContractError> {
    ContractReader { document: None, path: String::new() }.contract(value)
}

struct ContractReader<'d> {
    document: Option<&'d Document>,
    path: String,
}

/// One step down into the document.
enum Step<'k> {
    Key(&'k str),
    Index(usize),
}

impl ContractReader<'_> {
    fn wrong<T>(&self, problem: impl Into<String>) -> Result<T, ContractError> {
        let problem = problem.into();
        let line = self.document.map_or(1, |document| document.problem(&self.path, "").line);
        Err(ContractError { line, place: self.path.clone(), problem })
    }

    /// Reads the value of a key.
    fn at<T>(
        &mut self,
        step: Step<'_>,
        read: impl FnOnce(&mut Self) -> Result<T, ContractError>,
    ) -> Result<T, ContractError> {
        let below = match step {
            Step::Key(key) => key_path(&self.path, key),
            Step::Index(index) => item_path(&self.path, index),
        };
        let above = std::mem::replace(&mut self.path, below);
        let found = read(self)?;
        self.path = above;
        Ok(found)
    }

    fn object<'v>(
        &mut self,
        value: &'v Value,
        keys: &[&str],
    ) -> Result<&'v Map<String, Value>, ContractError> {
        let Value::Object(map) = value else { return self.wrong("must be an object") };
        if let Some(key) = map.keys().find(|key| !keys.contains(&key.as_str())) {
            let distance = |known: &&&str| strsim::damerau_levenshtein(key, known);
            let is_part =
                |known: &&&str| known.starts_with(key.as_str()) || key.starts_with(**known);
            let nearest = keys.iter().min_by_key(distance).filter(|known| distance(known) <= 3);
            let nearest = nearest.or_else(|| keys.iter().find(is_part));
            let hint = match nearest {
                Some(known) => format!("; did you mean `{known}`?"),
                None => format!("; the keys are {}", keys.join(", ")),
            };
            return self.at(Step::Key(key), |this| {
                this.wrong(format!("is not a key of a contract{hint}"))
            });
        }
        Ok(map)
    }

    fn contract(&mut self, value: &Value) -> Result<Contract, ContractError> {
        let map = self.object(value, KEYS)?;
        if let Some(version) = map.get("version") {
            self.at(Step::Key("version"), |this| match version.as_str() {
                Some(VERSION) => Ok(()),
                _ => this.wrong(format!("must be \"{VERSION}\"")),
            })?;
        }
        Ok(Contract {
            name: self.text(map, "name")?.unwrap_or_default(),
            tier: self.text(map, "tier")?,
            required_files: self.files(map)?,
            checks: self.checks(map)?,
            commitments: self.commitments(map)?,
            audit: self.audit(map)?,
            max_iterations: self
                .number(map, "max_iterations", u64::from(u32::MAX))?
                .map(|found| u32::try_from(found).unwrap_or(u32::MAX)),
        })
    }

    fn text(
        &mut self,
        map: &Map<String, Value>,
        name: &str,
    ) -> Result<Option<String>, ContractError> {
        let Some(value) = map.get(name) else { return Ok(None) };
        self.at(Step::Key(name), |this| match value.as_str() {
            Some(text) => Ok(Some(text.to_owned())),
            None => this.wrong("must be a text"),
        })
    }

    fn flag(
        &mut self,
        map: &Map<String, Value>,
        name: &str,
        default: bool,
    ) -> Result<bool, ContractError> {
        let Some(value) = map.get(name) else { return Ok(default) };
        self.at(Step::Key(name), |this| match value.as_bool() {
            Some(flag) => Ok(flag),
            None => this.wrong("must be true or false"),
        })
    }

    fn number(
        &mut self,
        map: &Map<String, Value>,
        name: &str,
        max: u64,
    ) -> Result<Option<u64>, ContractError> {
        let Some(value) = map.get(name) else { return Ok(None) };
        self.at(Step::Key(name), |this| {
            match value.as_u64().filter(|found| (1..=max).contains(found)) {
                Some(found) => Ok(Some(found)),
                None => this.wrong(format!("must be a whole number from 1 to {max}")),
            }
        })
    }

    fn files(&mut self, map: &Map<String, Value>) -> Result<Vec<String>, ContractError> {
        let Some(value) = map.get("required_files") else { return Ok(Vec::new()) };
        self.at(Step::Key("required_files"), |this| {
            let Value::Array(list) = value else { return this.wrong("must be a list of paths") };
            let mut files = Vec::new();
            for (index, value) in list.iter().enumerate() {
                files.push(this.at(Step::Index(index), |this| this.file(value))?);
            }
            Ok(files)
        })
    }

    fn file(&mut self, value: &Value) -> Result<String, ContractError> {
        let Some(path) = value.as_str().filter(|path| !path.trim().is_empty()) else {
            return self.wrong("must be a path");
        };
        match is_inside(path) {
            true => Ok(path.to_owned()),
            false => self.wrong(format!(
                "names `{path}`, which is outside the workspace; give a path below it"
            )),
        }
    }

    fn checks(&mut self, map: &Map<String, Value>) -> Result<Vec<Check>, ContractError> {
        let Some(value) = map.get("checks") else { return Ok(Vec::new()) };
        self.at(Step::Key("checks"), |this| {
            let Value::Object(map) = value else {
                return this.wrong("must be an object of names and commands");
            };
            if map.len() > MAX_CHECKS {
                return this.wrong(format!(
                    "has {} checks, and at most {MAX_CHECKS} are accepted",
                    map.len()
                ));
            }
            let mut checks = Vec::new();
            for (name, value) in map {
                checks.extend(this.at(Step::Key(name), |this| this.check(name, value))?);
            }
            Ok(checks)
        })
    }

    /// `true`, `false`, a command, or an object with the command and its limit.
    fn check(&mut self, name: &str, value: &Value) -> Result<Option<Check>, ContractError> {
        let check =
            |command, timeout_seconds| Check { name: name.to_owned(), command, timeout_seconds };
        match value {
            Value::Bool(false) => Ok(None),
            Value::Bool(true) => match is_known(name) {
                true => Ok(Some(check(None, None))),
                false => self.wrong(format!(
                    "has no command, and only {} have a usual one; write the command in place of `true`",
                    known_checks().collect::<Vec<_>>().join(", ")
                )),
            },
            Value::String(command) => Ok(Some(check(Some(self.command(command)?), None))),
            Value::Object(_) => {
                let map = self.object(value, CHECK_KEYS)?;
                let timeout = self.number(map, "timeout_seconds", MAX_CHECK_SECONDS)?;
                let command = match self.text(map, "command")? {
                    Some(command) => Some(self.at(Step::Key("command"), |this| this.command(&command))?),
                    None if is_known(name) => None,
                    None => return self.wrong("has no `command`"),
                };
                Ok(Some(check(command, timeout)))
            }
            Value::Null | Value::Number(_) | Value::Array(_) => {
                self.wrong("must be true, false, a command, or an object with `command`")
            }
        }
    }

    fn command(&mut self, command: &str) -> Result<String, ContractError> {
        match command.trim().is_empty() || command.contains('\0') {
            true => self.wrong("is not a command"),
            false => Ok(command.to_owned()),
        }
    }

    /// `commitments`, or as the source of the format has it, `mentu.commitments`.
    fn commitments(
        &mut self,
        map: &Map<String, Value>,
    ) -> Result<Option<CommitmentRules>, ContractError> {
        if let Some(value) = map.get("mentu") {
            return self.at(Step::Key("mentu"), |this| {
                let inner = this.object(value, &["enabled", "commitments"])?;
                match this.flag(inner, "enabled", true)? {
                    true => this.commitments(inner),
                    false => Ok(None),
                }
            });
        }
        let Some(value) = map.get("commitments") else { return Ok(None) };
        self.at(Step::Key("commitments"), |this| {
            let map = this.object(value, COMMITMENT_KEYS)?;
            if let Some(mode) = this.text(map, "mode")?
                && mode != "dynamic"
            {
                return this.at(Step::Key("mode"), |this| this.wrong("must be \"dynamic\""));
            }
            let min_count = match map.get("min_count") {
                Some(value) => this.at(Step::Key("min_count"), |this| match value.as_u64() {
                    Some(count) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
                    None => this.wrong("must be a whole number"),
                })?,
                None => 1,
            };
            let rules = CommitmentRules {
                min_count,
                require_closed: this.flag(map, "require_closed", true)?,
                require_evidence: this.flag(map, "require_evidence", true)?,
            };
            Ok(this.flag(map, "enabled", true)?.then_some(rules))
        })
    }

    fn audit(&mut self, map: &Map<String, Value>) -> Result<Audit, ContractError> {
        let Some(value) = map.get("audit") else { return Ok(Audit::None) };
        self.at(Step::Key("audit"), |this| match value {
            Value::Bool(true) => Ok(Audit::Person),
            Value::Bool(false) => Ok(Audit::None),
            Value::String(word) => match word.parse() {
                Ok(audit) => Ok(audit),
                Err(error) => this.wrong(error.to_string()),
            },
            _ => this.wrong("must be true, false, \"none\", \"person\" or \"auditor\""),
        })
    }
}

/// Whether a path as it is written stays below the directory that it starts from.
fn is_inside(path: &str) -> bool {
    if path.starts_with('/') || path.starts_with('~') || path.contains('\0') || path.contains('\\')
    {
        return false;
    }
    let mut depth = 0_i64;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return false;
        }
    }
    depth > 0
}

#[cfg(test)]
mod tests;
