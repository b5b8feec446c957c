//! From what a file says to a workflow that cannot be wrong.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use serde_saphyr::Spanned;
use windlass_core::axes::UnknownValue;

use super::raw::{RawFile, RawPlace, RawStep, Text, nearest};
use super::{
    AgentWork, Base, DefinitionError, Input, KNOWN_RUNNERS, LoopWork, MAX_DEPTH, MAX_ROUNDS,
    MAX_STEPS, MAX_WORKERS, MergeWork, OWN_RUNNER, ParallelWork, Place, Spell, Step, Work,
    Workflow, WorktreeSpec, duration, keys,
};
use crate::template::{self, RESERVED};

type Checked<T> = Result<T, DefinitionError>;

pub(super) fn checked(raw: RawFile, text: &str, stem: &str) -> Checked<Workflow> {
    let line_of = |key: &str| line_of(text, key);
    let name = raw.name.as_ref().map_or(stem, |name| name.value.0.trim()).to_owned();
    let name_line = raw.name.as_ref().map_or(1, line);
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        let reason = format!("`{name}` is not a name: letters, digits, `-`, `_` and `.` make one");
        return Err(DefinitionError::at(name_line, reason));
    }
    let mut inputs = BTreeMap::new();
    for (name, given) in raw.inputs {
        check_name(&name, line_of(&name), "an input")?;
        let (description, default) =
            given.map_or((None, None), |one| (one.description, one.default));
        let description = description.map(|text| text.0).unwrap_or_default();
        inputs.insert(name, Input { description, default: default.map(|text| text.0) });
    }
    let mut runners = BTreeMap::new();
    for (name, given) in raw.runners {
        let command: Vec<_> = given.value.command.iter().map(|word| word.0.clone()).collect();
        if command.first().is_none_or(|program| program.trim().is_empty()) {
            let reason = format!("runner `{name}` has no program in `command`");
            return Err(DefinitionError::at(line(&given), reason));
        }
        if name == OWN_RUNNER {
            let reason = format!("`{name}` is our own runner and cannot be another program");
            return Err(DefinitionError::at(line(&given), reason));
        }
        runners.insert(name, command);
    }
    let place = raw.worktree.map(place).transpose()?;
    let place = place.unwrap_or_else(|| Place::Worktree(WorktreeSpec::default()));
    let Some(steps) = raw.steps.filter(|steps| !steps.is_empty()) else {
        return Err(DefinitionError::at(line_of("steps"), "there are no `steps`"));
    };
    let mut workflow = Workflow {
        name,
        description: raw.description.map(|text| text.0).unwrap_or_default(),
        inputs,
        runner: OWN_RUNNER.to_owned(),
        runners,
        place,
        target: raw.target.map(|text| text.0),
        steps: Vec::new(),
    };
    if let Some(runner) = raw.runner {
        workflow.runner = known_runner(&workflow, &runner)?;
    }
    workflow.steps = steps_of(&workflow, steps, 1)?;
    check_names(&workflow)?;
    check_merges(&workflow)?;
    Ok(workflow)
}

fn line<T>(value: &Spanned<T>) -> u64 {
    value.referenced.line()
}

/// The first line that begins with a key, for values that carry no place.
fn line_of(text: &str, key: &str) -> u64 {
    let found = text.lines().position(|line| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.starts_with(':'))
    });
    found.map_or(0, |index| index as u64 + 1)
}

fn place(given: Spanned<RawPlace>) -> Checked<Place> {
    let at = line(&given);
    match given.value {
        RawPlace::Switch(false) => Ok(Place::Here),
        RawPlace::Switch(true) => Ok(Place::Worktree(WorktreeSpec::default())),
        RawPlace::Spec(raw) => {
            let base = raw.base.map(|text| word::<Base>("base", &text, at)).transpose()?;
            Ok(Place::Worktree(WorktreeSpec {
                base: base.unwrap_or_default(),
                setup: raw.setup,
                cleanup: raw.cleanup,
                keep: raw.keep.unwrap_or_default(),
            }))
        }
    }
}

fn word<T>(key: &str, text: &str, line: u64) -> Checked<T>
where
    T: FromStr<Err = UnknownValue> + Display,
{
    text.trim().parse().map_err(|error: UnknownValue| {
        let reason = format!("`{key}` may not be `{}`; allowed: {}", error.given, error.allowed);
        DefinitionError::at(line, reason)
    })
}

fn steps_of(file: &Workflow, raw: Vec<Spanned<RawStep>>, depth: usize) -> Checked<Vec<Step>> {
    raw.into_iter().map(|step| step_of(file, step, depth)).collect()
}

fn step_of(file: &Workflow, raw: Spanned<RawStep>, depth: usize) -> Checked<Step> {
    let at = line(&raw);
    let mut raw = raw.value;
    let Some(name) = raw.name.take() else {
        return Err(DefinitionError::at(at, "a step has no `name`"));
    };
    let (at, name) = (line(&name), name.value.0);
    check_name(&name, at, "a step")?;
    let Some(kind) = raw.kind.take() else {
        let reason = format!("step `{name}` has no `type`; allowed: {}", keys::TYPES.join(", "));
        return Err(DefinitionError::at(at, reason));
    };
    check_type(&kind)?;
    if depth > MAX_DEPTH {
        let reason = format!("step `{name}` is nested deeper than {MAX_DEPTH}");
        return Err(DefinitionError::at(at, reason));
    }
    check_keys(&name, at, &kind.value.0, &raw)?;
    let condition = |key: &str, given: Option<Spanned<Text>>| match given {
        Some(text) => {
            let condition = template::condition(&text.value.0);
            template::check(&condition).map_err(|error| {
                DefinitionError::at(line(&text), format!("`{key}` of step `{name}`: {error}"))
            })?;
            Ok(Some(condition))
        }
        None => Ok(None),
    };
    let when = condition("when", raw.when.take())?;
    let until = condition("until", raw.until.take())?;
    let timeout = raw.timeout.take().map(|text| {
        duration::read(&text.value.0).ok_or_else(|| {
            let given = &text.value.0;
            let reason = format!(
                "`timeout` of step `{name}` may not be `{given}`; write `90s`, `10m` or `2h`"
            );
            DefinitionError::at(line(&text), reason)
        })
    });
    let timeout = timeout.transpose()?;
    let on_fail = raw.on_fail.take().map(|text| word("on_fail", &text.value.0, line(&text)));
    let on_fail = on_fail.transpose()?.unwrap_or_default();
    let output = raw.output.take();
    if let Some(output) = &output {
        check_name(&output.value.0, line(output), "an output")?;
    }
    let needs = raw.needs.take().unwrap_or_default();
    Ok(Step {
        work: work(file, &name, &kind.value.0, raw, until, depth)?,
        line: at,
        when,
        timeout,
        on_fail,
        output: output.map(|output| output.value.0),
        needs: needs.into_iter().map(|need| need.value.0).collect(),
        name,
    })
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

/// A key of another type of step would be ignored without a word.
fn check_keys(name: &str, at: u64, kind: &str, raw: &RawStep) -> Checked<()> {
    fn given<T>(
        found: &mut Vec<(&'static str, u64)>,
        key: &'static str,
        value: &Option<Spanned<T>>,
    ) {
        found.extend(value.as_ref().map(|value| (key, line(value))));
    }
    let mut found = Vec::new();
    given(&mut found, "spell", &raw.spell);
    given(&mut found, "runner", &raw.runner);
    given(&mut found, "model", &raw.model);
    given(&mut found, "profile", &raw.profile);
    given(&mut found, "command", &raw.command);
    given(&mut found, "rerun", &raw.rerun);
    given(&mut found, "max", &raw.max);
    given(&mut found, "until", &raw.until);
    given(&mut found, "steps", &raw.steps);
    given(&mut found, "target", &raw.target);
    given(&mut found, "strategy", &raw.strategy);
    given(&mut found, "gates", &raw.gates);
    given(&mut found, "message", &raw.message);
    given(&mut found, "conflicts", &raw.conflicts);
    given(&mut found, "question", &raw.question);
    given(&mut found, "options", &raw.options);
    let allowed: Vec<_> = keys::of_type(kind).iter().map(|key| key.name).collect();
    if let Some((key, at)) = found.iter().find(|(key, _)| !allowed.contains(key)) {
        let reason = format!("`{key}` of step `{name}` does not belong to type `{kind}`");
        return Err(DefinitionError::at(*at, reason));
    }
    let missing = keys::required(kind).iter().find(|key| !found.iter().any(|one| one.0 == **key));
    match missing {
        None => Ok(()),
        Some(&"max") => {
            let reason =
                format!("loop `{name}` has no bound: say with `max` how many rounds it may have");
            Err(DefinitionError::at(at, reason))
        }
        Some(key) => Err(DefinitionError::at(at, format!("step `{name}` has no `{key}`"))),
    }
}

fn work(
    file: &Workflow,
    name: &str,
    kind: &str,
    raw: RawStep,
    until: Option<String>,
    depth: usize,
) -> Checked<Work> {
    let text = |key: &str, given: Option<Spanned<Text>>| {
        let Some(given) = given else { return Ok(None) };
        template::check(&given.value.0).map_err(|error| {
            DefinitionError::at(line(&given), format!("`{key}` of step `{name}`: {error}"))
        })?;
        Ok(Some(given.value.0))
    };
    let texts = |given: Option<Spanned<Vec<Text>>>| -> Vec<String> {
        given.map(|given| given.value.into_iter().map(|text| text.0).collect()).unwrap_or_default()
    };
    Ok(match kind {
        "agent" => Work::Agent(AgentWork {
            spell: spell(name, raw.spell)?,
            runner: raw.runner.map(|runner| known_runner(file, &runner)).transpose()?,
            model: raw.model.map(|model| model.value.0),
            profile: raw
                .profile
                .map(|text| word("profile", &text.value.0, line(&text)))
                .transpose()?,
        }),
        "script" => Work::Script {
            command: text("command", raw.command)?.unwrap_or_default(),
            rerun: raw.rerun.is_some_and(|rerun| rerun.value),
        },
        "loop" => {
            let (max, at) = raw.max.map_or((0, 0), |max| (max.value, line(&max)));
            if !(1..=MAX_ROUNDS).contains(&max) {
                let reason =
                    format!("`max` of loop `{name}` may not be {max}; allowed: 1 to {MAX_ROUNDS}");
                return Err(DefinitionError::at(at, reason));
            }
            Work::Loop(LoopWork { max, until, steps: inner(file, name, raw.steps, depth)? })
        }
        "parallel" => {
            let workers = raw.workers.map(|workers| (workers.value, line(&workers)));
            if let Some((workers, at)) =
                workers.filter(|(count, _)| !(1..=MAX_WORKERS).contains(count))
            {
                let reason = format!(
                    "`workers` of step `{name}` may not be {workers}; allowed: 1 to {MAX_WORKERS}"
                );
                return Err(DefinitionError::at(at, reason));
            }
            Work::Parallel(ParallelWork {
                workers: workers.map(|(count, _)| count),
                join: raw.join.is_none_or(|join| join.value),
                steps: inner(file, name, raw.steps, depth)?,
            })
        }
        "merge" => Work::Merge(MergeWork {
            from: text("from", raw.from)?,
            target: raw.target.map(|target| target.value.0),
            strategy: raw
                .strategy
                .map(|text| word("strategy", &text.value.0, line(&text)))
                .transpose()?
                .unwrap_or_default(),
            gates: texts(raw.gates),
            message: text("message", raw.message)?,
            conflicts: raw
                .conflicts
                .map(|text| word("conflicts", &text.value.0, line(&text)))
                .transpose()?
                .unwrap_or_default(),
        }),
        _ => Work::Ask {
            question: text("question", raw.question)?.unwrap_or_default(),
            options: texts(raw.options),
        },
    })
}

fn inner(
    file: &Workflow,
    name: &str,
    raw: Option<Spanned<Vec<Spanned<RawStep>>>>,
    depth: usize,
) -> Checked<Vec<Step>> {
    let at = raw.as_ref().map_or(0, line);
    let steps = raw.map(|raw| raw.value).unwrap_or_default();
    if steps.is_empty() {
        return Err(DefinitionError::at(at, format!("`steps` of `{name}` is empty")));
    }
    steps_of(file, steps, depth + 1)
}

fn spell(name: &str, given: Option<Spanned<Text>>) -> Checked<Spell> {
    let Some(given) = given else {
        return Err(DefinitionError::at(0, format!("step `{name}` has no `spell`")));
    };
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

fn known_runner(file: &Workflow, given: &Spanned<Text>) -> Checked<String> {
    let name = given.value.0.trim();
    let own = file.runners.keys().map(String::as_str);
    let known: Vec<_> = KNOWN_RUNNERS.into_iter().chain(own).collect();
    if known.contains(&name) {
        return Ok(name.to_owned());
    }
    let reason = match nearest(name, &known) {
        Some(near) => format!("there is no runner `{name}`; did you mean `{near}`?"),
        None => format!("there is no runner `{name}`; known are {}", known.join(", ")),
    };
    Err(DefinitionError::at(line(given), reason))
}

/// A name that templates can reach: `{{.name}}`.
fn check_name(name: &str, at: u64, what: &str) -> Checked<()> {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_plain =
        name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
    if !is_plain {
        let reason =
            format!("`{name}` cannot be the name of {what}: letters, digits and `_` make one");
        return Err(DefinitionError::at(at, reason));
    }
    match RESERVED.contains(&name) {
        true => {
            let reason = format!(
                "`{name}` cannot be the name of {what}: templates have it for something else"
            );
            Err(DefinitionError::at(at, reason))
        }
        false => Ok(()),
    }
}

/// One name, one thing: a template could not tell two apart.
fn check_names(workflow: &Workflow) -> Checked<()> {
    let steps = workflow.all_steps();
    if steps.len() > MAX_STEPS {
        let reason = format!("there are {} steps; {MAX_STEPS} is the limit", steps.len());
        return Err(DefinitionError::at(steps[MAX_STEPS].line, reason));
    }
    let mut seen: BTreeMap<&str, &str> =
        workflow.inputs.keys().map(|name| (name.as_str(), "an input")).collect();
    let mut earlier: Vec<&str> = Vec::new();
    for step in &steps {
        let given = [(Some(&step.name), "a step"), (step.output.as_ref(), "an output")];
        for (name, what) in given.into_iter().filter_map(|(name, what)| Some((name?, what))) {
            // A step may name its output as it is named itself.
            if what == "an output" && *name == step.name {
                continue;
            }
            if let Some(other) =
                seen.insert(name, what).filter(|other| (*other, what) != ("an output", "an output"))
            {
                let reason = format!("`{name}` is already the name of {other}");
                return Err(DefinitionError::at(step.line, reason));
            }
        }
    }
    let known: Vec<_> = steps.iter().map(|step| step.name.as_str()).collect();
    for step in &steps {
        for need in &step.needs {
            if !known.contains(&need.as_str()) {
                let hint = nearest(need, &known)
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                let reason =
                    format!("step `{}` needs `{need}`, which is not a step{hint}", step.name);
                return Err(DefinitionError::at(step.line, reason));
            }
            if !earlier.contains(&need.as_str()) {
                let reason = format!("step `{}` needs `{need}`, which comes after it", step.name);
                return Err(DefinitionError::at(step.line, reason));
            }
        }
        earlier.push(&step.name);
    }
    Ok(())
}

/// Without a worktree there is nothing to merge.
fn check_merges(workflow: &Workflow) -> Checked<()> {
    let needs_worktree = |step: &&&Step| matches!(step.work, Work::Merge(_) | Work::Parallel(_));
    let steps = workflow.all_steps();
    match steps.iter().find(needs_worktree) {
        Some(step) if workflow.place == Place::Here => {
            let kind = step.work.kind();
            let reason = format!(
                "step `{}` of type `{kind}` needs a worktree, and `worktree` is `false`",
                step.name
            );
            Err(DefinitionError::at(step.line, reason))
        }
        _ => Ok(()),
    }
}
