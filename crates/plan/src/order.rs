//! Which tasks must be done before which: by what tasks say, and by the order of phases.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::Plan;

/// The tasks that must be done before each task, by their names.
pub type Dependencies = BTreeMap<String, BTreeSet<String>>;

/// What each task waits for. A phase waits for the one before it, unless it says which phases it waits for;
/// tasks of one phase wait for each other only where they say so.
pub fn dependencies(plan: &Plan) -> Dependencies {
    let mut all = Dependencies::new();
    for (index, phase) in plan.phases.iter().enumerate() {
        let before: Vec<&str> = match (&phase.depends_on, index) {
            (Some(named), _) => named.iter().map(String::as_str).collect(),
            (None, 0) => Vec::new(),
            (None, index) => vec![plan.phases[index - 1].id.as_str()],
        };
        let mut seen = BTreeSet::new();
        let waits: BTreeSet<String> =
            before.into_iter().flat_map(|id| ends_of(plan, id, &mut seen)).collect();
        for task in &phase.tasks {
            let own = task.depends_on.iter().cloned();
            all.entry(task.id.clone()).or_default().extend(own.chain(waits.clone()));
        }
    }
    all
}

/// The tasks of a phase; of an empty one, those of the phases before it.
fn ends_of(plan: &Plan, id: &str, seen: &mut BTreeSet<String>) -> Vec<String> {
    let Some(index) = plan.phases.iter().position(|phase| phase.id == id) else {
        return Vec::new();
    };
    let phase = &plan.phases[index];
    if !phase.tasks.is_empty() || !seen.insert(id.to_owned()) {
        return phase.tasks.iter().map(|task| task.id.clone()).collect();
    }
    match &phase.depends_on {
        Some(named) => named.iter().flat_map(|id| ends_of(plan, id, seen)).collect(),
        None if index > 0 => ends_of(plan, &plan.phases[index - 1].id, seen),
        None => Vec::new(),
    }
}

/// A cycle, from a task back to itself; `None` where there is none.
pub(crate) fn cycle(dependencies: &Dependencies) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    for start in dependencies.keys() {
        let mut trail = Vec::new();
        if let Some(cycle) = follow(dependencies, start, &mut trail, &mut done) {
            return Some(cycle);
        }
    }
    None
}

fn follow<'d>(
    dependencies: &'d Dependencies,
    task: &'d str,
    trail: &mut Vec<&'d str>,
    done: &mut BTreeSet<&'d str>,
) -> Option<Vec<String>> {
    if done.contains(task) {
        return None;
    }
    if let Some(start) = trail.iter().position(|seen| *seen == task) {
        let around = trail[start..].iter().chain([&task]);
        return Some(around.map(|task| (*task).to_owned()).collect());
    }
    trail.push(task);
    let found = dependencies
        .get(task)
        .into_iter()
        .flatten()
        .find_map(|before| follow(dependencies, before, trail, done));
    trail.pop();
    done.insert(task);
    found
}
