//! Rules that people give in advance, for all projects or for one.

use std::path::Path;

use windlass_core::policy::Pattern;
use windlass_store::{NewStandingRule, StandingRule};

use crate::{Coordinator, Error};

/// What people allow in advance.
#[derive(Clone, Copy)]
pub struct StandingRules<'a> {
    pub(crate) coordinator: &'a Coordinator,
}

impl StandingRules<'_> {
    /// Allows what a pattern names, in every project or in the one at `directory`; returns the rule's number.
    pub async fn allow(
        self,
        pattern: &Pattern,
        directory: Option<&Path>,
        by: &str,
    ) -> Result<i64, Error> {
        let rule = NewStandingRule {
            pattern: pattern.to_string(),
            directory: directory.map(|path| path.display().to_string()),
            by: by.to_owned(),
        };
        Ok(self.coordinator.store.standing_rules().add(self.coordinator.now(), rule).await?)
    }

    /// Every rule, oldest first.
    pub fn all(self) -> Result<Vec<StandingRule>, Error> {
        Ok(self.coordinator.store.standing_rules().all()?)
    }

    /// Takes a rule back; whether there was one of this number.
    pub async fn revoke(self, number: i64) -> Result<bool, Error> {
        Ok(self.coordinator.store.standing_rules().remove(number).await?)
    }
}

/// The rules that hold for tasks in a directory: those for every project, and those for it or one above it.
pub fn rules_in(rules: &[StandingRule], directory: &Path) -> Vec<Pattern> {
    let holds = |rule: &&StandingRule| {
        rule.directory.as_deref().is_none_or(|project| directory.starts_with(project))
    };
    rules.iter().filter(holds).filter_map(|rule| Pattern::new(&rule.pattern)).collect()
}
