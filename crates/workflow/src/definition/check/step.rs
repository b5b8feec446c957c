//! One step: its keys, its values, its work, and the steps inside it.

use serde_saphyr::Spanned;

use super::{Check, Checked, check_name, line, word};
use crate::definition::raw::{RawStep, Text, nearest};
use crate::definition::{
    AgentWork, DefinitionError, LoopWork, MAX_DEPTH, MAX_ROUNDS, MAX_WORKERS, MergeWork,
    ParallelWork, PullRequestWork, Spell, Step, Work, Workflow, duration, keys,
};
use crate::template;

impl Check<'_> {
    /// The steps that are right.
    pub(super) fn steps(
        &mut self,
        file: &Workflow,
        raw: Vec<Spanned<RawStep>>,
        depth: usize,
    ) -> Vec<Step> {
        raw.into_iter().filter_map(|step| self.step(file, step, depth)).collect()
    }

    fn step(&mut self, file: &Workflow, raw: Spanned<RawStep>, depth: usize) -> Option<Step> {
        let (at, mut raw) = (line(&raw), raw.value);
        let Some(name) = raw.name.take() else {
            self.add(at, "a step has no `name`");
            return None;
        };
        let (at, name) = (line(&name), name.value.0);
        self.note(check_name(&name, at, "a step"));
        self.names.push((name.clone(), at));
        let Some(kind) = raw.kind.take() else {
            let allowed = keys::TYPES.join(", ");
            self.add(at, format!("step `{name}` has no `type`; allowed: {allowed}"));
            return None;
        };
        if depth > MAX_DEPTH {
            self.add(at, format!("step `{name}` is nested deeper than {MAX_DEPTH}"));
            return None;
        }
        self.note(check_type(&kind))?;
        let mut of = StepCheck { check: self, file, name: &name, depth };
        let are_keys_right = of.keys(at, &kind.value.0, &raw);
        let when = of.condition("when", raw.when.take());
        let until = of.condition("until", raw.until.take());
        let timeout = raw.timeout.take().and_then(|text| of.timeout(&kind.value.0, &text));
        let on_fail = of.word("on_fail", raw.on_fail.take());
        let output = raw.output.take();
        if let Some(output) = &output {
            of.check.note(check_name(&output.value.0, line(output), "an output"));
        }
        let needs = raw.needs.take().unwrap_or_default();
        let work = of.work(&kind.value.0, raw, until).filter(|_| are_keys_right)?;
        Some(Step {
            work,
            line: at,
            when,
            timeout,
            on_fail: on_fail.unwrap_or_default(),
            output: output.map(|output| output.value.0),
            needs: needs.into_iter().map(|need| need.value.0).collect(),
            name,
        })
    }
}

/// Checks the values of one step.
struct StepCheck<'a, 'c> {
    check: &'a mut Check<'c>,
    file: &'a Workflow,
    name: &'a str,
    depth: usize,
}

impl StepCheck<'_, '_> {
    /// A key of another type of step would be ignored without a word; one that is missing has no meaning to replace it.
    fn keys(&mut self, at: u64, kind: &str, raw: &RawStep) -> bool {
        let (name, found) = (self.name, raw.own_keys());
        let allowed: Vec<_> = keys::of_type(kind).iter().map(|key| key.name).collect();
        let mut is_right = true;
        for (key, at) in found.iter().filter(|(key, _)| !allowed.contains(key)) {
            is_right = false;
            let reason = format!("`{key}` of step `{name}` does not belong to type `{kind}`");
            self.check.add(*at, reason);
        }
        let is_missing = |key: &&&str| !found.iter().any(|one| one.0 == **key);
        for key in keys::required(kind).iter().filter(is_missing) {
            is_right = false;
            let reason = match *key {
                "max" => {
                    format!(
                        "loop `{name}` has no bound: say with `max` how many rounds it may have"
                    )
                }
                key => format!("step `{name}` has no `{key}`"),
            };
            self.check.add(at, reason);
        }
        is_right
    }

    fn condition(&mut self, key: &str, given: Option<Spanned<Text>>) -> Option<String> {
        let text = given?;
        let condition = template::condition(&text.value.0);
        self.template(key, line(&text), &condition)?;
        Some(condition)
    }

    fn text(&mut self, key: &str, given: Option<Spanned<Text>>) -> Option<String> {
        let given = given?;
        if given.value.0.trim().is_empty() {
            let name = self.name;
            self.check.add(line(&given), format!("`{key}` of step `{name}` is empty"));
            return None;
        }
        self.template(key, line(&given), &given.value.0)?;
        Some(given.value.0)
    }

    fn template(&mut self, key: &str, at: u64, text: &str) -> Option<()> {
        let name = self.name;
        self.check.note(
            template::check(text).map_err(|error| {
                DefinitionError::at(at, format!("`{key}` of step `{name}`: {error}"))
            }),
        )
    }

    fn timeout(&mut self, kind: &str, text: &Spanned<Text>) -> Option<std::time::Duration> {
        let (name, given) = (self.name, &text.value.0);
        if kind == "ask" {
            let reason = format!(
                "step `{name}` of type `ask` has no `timeout`: a question waits for as long as a person needs"
            );
            self.check.add(line(text), reason);
            return None;
        }
        let read = duration::read(given);
        if read.is_none() {
            let reason = format!(
                "`timeout` of step `{name}` may not be `{given}`; write `90s`, `10m` or `2h`"
            );
            self.check.add(line(text), reason);
        }
        read
    }

    /// A list of texts, none of which may be empty or there twice.
    fn texts(&mut self, key: &str, given: Option<Spanned<Vec<Text>>>) -> Vec<String> {
        let Some(given) = given else { return Vec::new() };
        let (at, name) = (line(&given), self.name);
        let texts: Vec<String> = given.value.into_iter().map(|text| text.0).collect();
        for (place, text) in texts.iter().enumerate() {
            if text.trim().is_empty() {
                self.check.add(at, format!("`{key}` of step `{name}` has an empty entry"));
            } else if texts.iter().take(place).any(|earlier| earlier == text) {
                self.check.add(at, format!("`{key}` of step `{name}` has `{text}` twice"));
            }
        }
        texts
    }

    fn word<T>(&mut self, key: &str, given: Option<Spanned<Text>>) -> Option<T>
    where
        T: std::str::FromStr<Err = windlass_core::axes::UnknownValue> + std::fmt::Display,
    {
        let given = given?;
        self.check.note(word(key, &given.value.0, line(&given)))
    }

    /// A whole number from 1 to `most`.
    fn number(&mut self, key: &str, given: Option<Spanned<Text>>, most: u32) -> Option<u32> {
        let given = given?;
        let number = given.value.0.trim().parse().ok().filter(|number| (1..=most).contains(number));
        if number.is_none() {
            let (name, text) = (self.name, &given.value.0);
            let reason =
                format!("`{key}` of step `{name}` may not be `{text}`; allowed: 1 to {most}");
            self.check.add(line(&given), reason);
        }
        number
    }

    fn switch(&mut self, key: &str, given: Option<Spanned<Text>>) -> Option<bool> {
        let given = given?;
        let switch = given.value.0.trim().parse().ok();
        if switch.is_none() {
            let (name, text) = (self.name, &given.value.0);
            let reason =
                format!("`{key}` of step `{name}` may not be `{text}`; allowed: true, false");
            self.check.add(line(&given), reason);
        }
        switch
    }

    /// What the step does; `None` where that is wrong.
    fn work(&mut self, kind: &str, raw: RawStep, until: Option<String>) -> Option<Work> {
        let before = self.check.errors.len();
        let work = match kind {
            "agent" => Work::Agent(AgentWork {
                runner: raw.runner.and_then(|runner| self.check.runner(self.file, &runner)),
                model: raw.model.map(|model| model.value.0),
                profile: self.word("profile", raw.profile),
                spell: raw.spell.and_then(|given| self.check.note(spell(self.name, given)))?,
            }),
            "script" => Work::Script {
                command: self.text("command", raw.command)?,
                rerun: self.switch("rerun", raw.rerun).unwrap_or_default(),
            },
            "loop" => {
                let max = self.number("max", raw.max, MAX_ROUNDS);
                let steps = self.inner(raw.steps);
                Work::Loop(LoopWork { max: max?, until, steps })
            }
            "parallel" => {
                let tries = self.switch("tries", raw.tries).unwrap_or_default();
                let at = raw.join.as_ref().map(line);
                let join = self.switch("join", raw.join).unwrap_or(!tries);
                if let Some(at) = at.filter(|_| join && tries) {
                    let name = self.name;
                    let reason = format!("step `{name}` cannot join what are `tries` of the same");
                    self.check.add(at, reason);
                }
                let workers = self.number("workers", raw.workers, MAX_WORKERS);
                let steps = self.inner(raw.steps);
                Work::Parallel(ParallelWork { workers, join, tries, steps })
            }
            "merge" => Work::Merge(MergeWork {
                from: self.text("from", raw.from),
                target: raw.target.map(|target| target.value.0),
                strategy: self.word("strategy", raw.strategy).unwrap_or_default(),
                gates: self.texts("gates", raw.gates),
                message: self.text("message", raw.message),
                conflicts: self.word("conflicts", raw.conflicts).unwrap_or_default(),
            }),
            "pull_request" => Work::PullRequest(PullRequestWork {
                remote: raw.remote.map(|remote| remote.value.0),
                target: raw.target.map(|target| target.value.0),
                title: self.text("title", raw.title),
                body: self.text("body", raw.body),
                command: self.text("command", raw.command),
            }),
            _ => Work::Ask {
                question: self.text("question", raw.question)?,
                options: self.texts("options", raw.options),
                from: raw.from.map(|from| from.value.0),
            },
        };
        (self.check.errors.len() == before).then_some(work)
    }

    fn inner(&mut self, raw: Option<Spanned<Vec<Spanned<RawStep>>>>) -> Vec<Step> {
        let Some(raw) = raw else { return Vec::new() };
        let (at, steps) = (line(&raw), raw.value);
        if steps.is_empty() {
            self.check.add(at, format!("`steps` of `{}` is empty", self.name));
        }
        self.check.steps(self.file, steps, self.depth + 1)
    }
}

fn check_type(kind: &Spanned<Text>) -> Checked<()> {
    let given = kind.value.0.as_str();
    if keys::TYPES.contains(&given) {
        return Ok(());
    }
    let reason = match nearest(given, keys::TYPES) {
        Some(near) => format!("there is no step type `{given}`; did you mean `{near}`?"),
        None => format!("there is no step type `{given}`; allowed: {}", keys::TYPES.join(", ")),
    };
    Err(DefinitionError::at(line(kind), reason))
}

fn spell(name: &str, given: Spanned<Text>) -> Checked<Spell> {
    let (at, text) = (line(&given), given.value.0);
    if text.contains('\n') {
        template::check(&text).map_err(|error| {
            DefinitionError::at(at, format!("`spell` of step `{name}`: {error}"))
        })?;
        return Ok(Spell::Inline(text));
    }
    let text = text.trim().to_owned();
    let is_part = |part: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        !part.is_empty() && !part.starts_with('.') && part.chars().all(is_plain)
    };
    match text.split('/').all(is_part) {
        true => Ok(Spell::Named(text)),
        false => {
            let reason = format!(
                "`{text}` is not the name of a spell; a text of several lines is one itself"
            );
            Err(DefinitionError::at(at, reason))
        }
    }
}
