//! The decision table and what is laid over it, in order.

use serde::{Deserialize, Serialize};

use super::class::{Assessment, Class};
use crate::axes::{Axes, PermissionProfile, RunControl};
use crate::words;

words! {
    /// What happens to a tool call.
    Decision ("decision") {
        /// It runs.
        Allow = "allow",
        /// A person is asked.
        Ask = "ask",
        /// It does not run; the model is told why.
        Deny = "deny",
    }
}

/// A decision and the reason a person or the model reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What happens.
    pub decision: Decision,
    /// Why.
    pub reason: String,
}

/// What is laid over the table; facts that the caller has matched against this very call.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The reason of the denylist entry that matches, if one does.
    pub denylisted: Option<String>,
    /// Whether a `[policy] allow` entry names this call.
    pub allowlisted: bool,
    /// Why the role, plan or offered tools exclude this call, if they do.
    pub filtered: Option<String>,
    /// Whether a session's allow rule covers this call.
    pub session_rule: bool,
    /// Whether a person has approved exactly this call.
    pub approved: bool,
}

/// Decides one call.
pub fn decide(call: &Assessment, axes: &Axes, rules: &Rules) -> Verdict {
    let profile = axes.permission_profile;
    let verdict = |decision, reason: String| Verdict { decision, reason };

    if let Some(reason) = &rules.denylisted {
        return verdict(Decision::Deny, reason.clone());
    }
    let mut decision = by_profile(call.class, profile);
    let mut reason = format!("{} under profile `{profile}`: {}", call.class, call.reason);

    if decision == Decision::Deny && rules.allowlisted && call.class < Class::Destructive {
        decision = Decision::Allow;
        reason = format!("allowed by `[policy] allow`: {}", call.reason);
    }
    if let Some(filter) = &rules.filtered {
        return verdict(Decision::Deny, filter.clone());
    }
    let harmless = matches!(call.class, Class::Read | Class::Note | Class::Ledger);
    if decision == Decision::Allow && axes.run_control == RunControl::Manual && !harmless {
        decision = Decision::Ask;
        reason = format!("run control is `manual`: {}", call.reason);
    }
    if decision == Decision::Ask && rules.session_rule && call.class < Class::Destructive {
        decision = Decision::Allow;
        reason = format!("allowed for this session: {}", call.reason);
    }
    if decision == Decision::Ask && rules.approved {
        decision = Decision::Allow;
        reason = format!("approved by a person: {}", call.reason);
    }
    verdict(decision, reason)
}

/// The table of `DESIGN.md` §7, one row a class.
pub const fn by_profile(class: Class, profile: PermissionProfile) -> Decision {
    use Decision::{Allow, Ask, Deny};
    let [restricted, normal, trusted, unrestricted] = match class {
        Class::Read | Class::Note | Class::Ledger | Class::Delegate => [Allow, Allow, Allow, Allow],
        Class::Edit | Class::LocalCommand => [Deny, Allow, Allow, Allow],
        Class::Test | Class::Build => [Deny, Ask, Allow, Allow],
        Class::Publish => [Deny, Ask, Ask, Allow],
        Class::Production | Class::Destructive | Class::Opaque => [Deny, Ask, Ask, Ask],
        Class::Catastrophic => [Deny, Deny, Deny, Deny],
    };
    match profile {
        PermissionProfile::Restricted => restricted,
        PermissionProfile::Normal => normal,
        PermissionProfile::Trusted => trusted,
        PermissionProfile::Unrestricted => unrestricted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_decision_table() {
        let rows: String = Class::ALL
            .iter()
            .map(|&class| {
                let row: Vec<_> = PermissionProfile::ALL
                    .iter()
                    .map(|&profile| format!("{:5}", by_profile(class, profile)))
                    .collect();
                format!("{class:13} {:8} {}\n", class.base_risk(), row.join(" ").trim_end())
            })
            .collect();
        insta::assert_snapshot!(rows, @r"
        read          LOW      allow allow allow allow
        note          LOW      allow allow allow allow
        ledger        LOW      allow allow allow allow
        edit          LOW      deny  allow allow allow
        delegate      MEDIUM   allow allow allow allow
        local command MEDIUM   deny  allow allow allow
        test          MEDIUM   deny  ask   allow allow
        build         MEDIUM   deny  ask   allow allow
        publish       HIGH     deny  ask   ask   allow
        production    HIGH     deny  ask   ask   ask
        destructive   HIGH     deny  ask   ask   ask
        opaque        HIGH     deny  ask   ask   ask
        catastrophic  CRITICAL deny  deny  deny  deny
        ");
    }

    #[test]
    fn manual_control_asks_for_everything_above_reading_and_notes() {
        let axes = Axes { run_control: RunControl::Manual, ..Axes::headless() };
        let decisions: Vec<_> = [Class::Read, Class::Note, Class::Edit, Class::Build]
            .map(|class| decide(&Assessment::of(class, "x"), &axes, &Rules::default()).decision)
            .into();
        use Decision::*;
        assert_eq!(decisions, [Allow, Allow, Ask, Ask]);
    }

    #[test]
    fn no_rule_lifts_a_deny_of_something_catastrophic() {
        let rules =
            Rules { allowlisted: true, session_rule: true, approved: true, ..Rules::default() };
        for &profile in PermissionProfile::ALL {
            let axes = Axes { permission_profile: profile, ..Axes::headless() };
            let call = Assessment::of(Class::Catastrophic, "rm -rf /");
            assert_eq!(decide(&call, &axes, &rules).decision, Decision::Deny);
        }
    }
}
