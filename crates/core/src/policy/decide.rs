//! The decision table and what changes its decisions, in order.
//!
//! Invariants:
//! - Total: every class under every profile has its answer in the table; there is no default arm.
//! - What the table denies stays denied, with three exceptions: `[policy] allow` lifts a denial below destructive,
//!   an auditor may run tests, and a person may choose to be asked about removal inside the workspace.
//! - Nothing of HIGH risk is allowed without a person, except publishing in `unrestricted` (ES-252). A rule (standing,
//!   of a session, or `[policy] allow`) is a person's decision, made in advance.
//! - In a work mode that is read-only nothing with an effect runs, whoever allowed it. The one exception is an
//!   auditor, who runs tests and linters while reviewing.

use serde::{Deserialize, Serialize};

use super::class::{Assessment, Class, Risk};
use crate::axes::{Axes, PermissionProfile, RunControl, WorkMode};
use crate::string_enum;

string_enum! {
    /// What happens to a tool call.
    Decision ("decision") {
        Allow = "allow",
        /// A person is asked.
        Ask = "ask",
        /// It does not run; the model reads why.
        Deny = "deny",
    }
}

/// A decision and the reason a person or the model reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub decision: Decision,
    pub reason: String,
    /// Which layer decided, for the log and for suggestions.
    pub by: Layer,
}

string_enum! {
    /// What decided a call: the table or one of the layers over it.
    Layer ("layer") {
        /// The class under the profile.
        Profile = "profile",
        /// A work mode that is read-only.
        WorkMode = "work mode",
        /// A denylist entry.
        Denylist = "denylist",
        /// A `[policy] allow` entry.
        Allowlist = "allowlist",
        /// The role's, plan's or offered tools.
        Filter = "filter",
        /// Run control `manual`.
        RunControl = "run control",
        /// An allow rule of the session.
        SessionRule = "session rule",
        /// A rule that a person gave for all tasks, or for those of a project.
        StandingRule = "standing rule",
        /// A person's answer to this very call.
        Approval = "approval",
    }
}

/// What changes the table's decision: facts that the caller has matched against this call.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The reason of the denylist entry that matches, if one does.
    pub denylisted: Option<String>,
    /// Whether a `[policy] allow` entry names this call.
    pub allowlisted: bool,
    /// Why the role, plan or offered tools exclude this call, if they do.
    pub filtered: Option<String>,
    /// Whether an auditor asks, who may run tests and linters under `restricted`. The auditor role sets it.
    pub auditor: bool,
    /// Whether a session's allow rule covers this call.
    pub session_rule: bool,
    /// The person's standing rule that covers this call, if one does.
    pub standing_rule: Option<String>,
    /// Whether it only removes inside the workspace, and a person wants to be asked about that.
    pub asks_removal: bool,
    /// Whether the configuration rates a part of it as more harmless than the table does.
    pub reclassified: bool,
    /// Whether a person has approved exactly this call.
    pub approved: bool,
}

/// Decides one call.
pub fn decide(call: &Assessment, axes: &Axes, rules: &Rules) -> Verdict {
    let profile = axes.permission_profile;
    let verdict = |decision, by, reason: String| Verdict { decision, reason, by };
    let class = effective_class(call);

    // MS-017: the denylist comes before everything, whatever the profile.
    if let Some(reason) = &rules.denylisted {
        return verdict(Decision::Deny, Layer::Denylist, reason.clone());
    }
    // What the configuration calls harmless was not said with this mode in mind.
    let audits = rules.auditor && axes.work_mode == WorkMode::Review && class == Class::Test;
    let informs = only_informs(call.class) || audits;
    if axes.work_mode.is_read_only() && (rules.reclassified || !informs) {
        let reason = read_only_reason(axes.work_mode, &call.reason);
        return verdict(Decision::Deny, Layer::WorkMode, reason);
    }
    let (mut decision, mut by) = (by_profile(class, profile), Layer::Profile);
    let mut reason = match class {
        Class::Catastrophic => format!("denied under every profile: {}", call.reason),
        Class::Read
        | Class::Note
        | Class::Ledger
        | Class::Edit
        | Class::Delegate
        | Class::LocalCommand
        | Class::Test
        | Class::Build
        | Class::Publish
        | Class::Production
        | Class::Destructive
        | Class::Opaque => format!("{} under profile `{profile}`: {}", call.class, call.reason),
    };
    if rules.asks_removal && class == Class::Catastrophic {
        decision = by_profile(Class::Destructive, profile);
        reason = format!("`policy.workspace_removal` under profile `{profile}`: {}", call.reason);
    }

    if decision == Decision::Deny && rules.auditor && class == Class::Test {
        (decision, by) = (Decision::Allow, Layer::Profile);
        reason = format!("an auditor may run tests: {}", call.reason);
    }
    if decision == Decision::Deny && rules.allowlisted && class < Class::Destructive {
        (decision, by) = (Decision::Allow, Layer::Allowlist);
        reason = format!("allowed by `[policy] allow`: {}", call.reason);
    }
    if let Some(filter) = &rules.filtered {
        return verdict(Decision::Deny, Layer::Filter, filter.clone());
    }
    let harmless = matches!(class, Class::Read | Class::Note | Class::Ledger);
    if decision == Decision::Allow && axes.run_control == RunControl::Manual && !harmless {
        (decision, by) = (Decision::Ask, Layer::RunControl);
        reason = format!("run control is `manual`: {}", call.reason);
    }
    if decision == Decision::Ask && rules.session_rule && can_be_session_allowed(class) {
        (decision, by) = (Decision::Allow, Layer::SessionRule);
        reason = format!("allowed for this session: {}", call.reason);
    }
    if decision == Decision::Ask
        && class < Class::Catastrophic
        && let Some(rule) = &rules.standing_rule
    {
        (decision, by) = (Decision::Allow, Layer::StandingRule);
        reason = format!("allowed by the rule `{rule}`: {}", call.reason);
    }
    if decision == Decision::Ask && rules.approved {
        (decision, by) = (Decision::Allow, Layer::Approval);
        reason = format!("approved by a person: {}", call.reason);
    }
    verdict(decision, by, reason)
}

/// Whether a call of this class changes nothing but the agent's own notes and plan. What a sub-agent does is
/// decided again, with the same work mode.
const fn only_informs(class: Class) -> bool {
    match class {
        Class::Read | Class::Note | Class::Ledger | Class::Delegate => true,
        Class::Edit
        | Class::LocalCommand
        | Class::Test
        | Class::Build
        | Class::Publish
        | Class::Production
        | Class::Destructive
        | Class::Opaque
        | Class::Catastrophic => false,
    }
}

/// Whether a tool whose most harmless call is of this class can be used in a work mode at all.
pub const fn is_usable_in(mode: WorkMode, class: Class) -> bool {
    !mode.is_read_only() || only_informs(class)
}

/// Why a call is denied in a mode that is read-only, and how to leave it.
fn read_only_reason(mode: WorkMode, what: &str) -> String {
    format!(
        "work mode `{mode}` is read-only, whatever else is allowed, and this call is not only reading: \
         {what}. The user can leave it by changing the work mode to `build`"
    )
}

/// The class whose row decides: a call that is riskier than its class is treated like one that leaves
/// the machine, such as a read of a private key.
pub fn effective_class(call: &Assessment) -> Class {
    match call.risk {
        Risk::Low | Risk::Medium => call.class,
        Risk::High => call.class.max(Class::Publish),
        Risk::Critical => Class::Catastrophic,
    }
}

/// Whether a session rule may ever cover calls of this class: nothing that destroys, that cannot be
/// read, or that touches production. (MS-068)
pub const fn can_be_session_allowed(class: Class) -> bool {
    match class {
        Class::Read
        | Class::Note
        | Class::Ledger
        | Class::Edit
        | Class::Delegate
        | Class::LocalCommand
        | Class::Test
        | Class::Build
        | Class::Publish => true,
        Class::Production | Class::Destructive | Class::Opaque | Class::Catastrophic => false,
    }
}

/// The table of `docs/design.md` §7, one row a class.
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

    fn axes(profile: PermissionProfile) -> Axes {
        Axes { permission_profile: profile, ..Axes::headless() }
    }

    fn decision(call: &Assessment, profile: PermissionProfile, rules: &Rules) -> Decision {
        decide(call, &axes(profile), rules).decision
    }

    /// MS-062…065, ES-250…253
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

    /// MS-046
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
        let rules = Rules {
            allowlisted: true,
            auditor: true,
            session_rule: true,
            standing_rule: Some("rm".into()),
            approved: true,
            ..Rules::default()
        };
        for &profile in PermissionProfile::ALL {
            let call = Assessment::of(Class::Catastrophic, "rm -rf /");
            assert_eq!(decision(&call, profile, &rules), Decision::Deny);
        }
    }

    /// ES-252
    #[test]
    fn nothing_of_high_risk_runs_without_a_person_but_publishing_in_unrestricted() {
        for &class in Class::ALL {
            for &profile in PermissionProfile::ALL {
                let call = Assessment::of(class, "x").at_least(Risk::High);
                let allowed = decision(&call, profile, &Rules::default()) == Decision::Allow;
                let excepted =
                    profile == PermissionProfile::Unrestricted && class <= Class::Publish;
                assert!(!allowed || excepted, "{class} under {profile}");
            }
        }
    }

    /// ES-253
    #[test]
    fn critical_risk_is_denied_whatever_the_class() {
        for &class in Class::ALL {
            let call = Assessment::of(class, "x").at_least(Risk::Critical);
            let found = decision(&call, PermissionProfile::Unrestricted, &Rules::default());
            assert_eq!(found, Decision::Deny, "{class}");
        }
    }

    /// MS-017
    #[test]
    fn the_denylist_denies_under_every_profile_and_over_every_approval() {
        let rules = Rules {
            denylisted: Some("no telemetry".into()),
            allowlisted: true,
            session_rule: true,
            approved: true,
            ..Rules::default()
        };
        for &profile in PermissionProfile::ALL {
            let verdict = decide(&Assessment::of(Class::Read, "x"), &axes(profile), &rules);
            assert_eq!((verdict.decision, &*verdict.reason), (Decision::Deny, "no telemetry"));
        }
    }

    /// MS-062
    #[test]
    fn an_allow_entry_lifts_a_deny_but_never_for_what_destroys() {
        let rules = Rules { allowlisted: true, ..Rules::default() };
        let decisions: Vec<_> = [Class::Edit, Class::Build, Class::Publish, Class::Destructive]
            .map(|class| {
                decision(&Assessment::of(class, "x"), PermissionProfile::Restricted, &rules)
            })
            .into();
        use Decision::*;
        assert_eq!(decisions, [Allow, Allow, Allow, Deny]);
    }

    #[test]
    fn an_auditor_runs_tests_under_restricted_and_nothing_more() {
        let rules = Rules { auditor: true, ..Rules::default() };
        let review = crate::role::Role::Auditor.axes(Axes::headless());
        let test = Assessment::of(Class::Test, "npm test");
        assert_eq!(decide(&test, &review, &rules).decision, Decision::Allow);
        assert_eq!(decide(&test, &review, &Rules::default()).decision, Decision::Deny);
        let decisions: Vec<_> = [Class::Read, Class::Test, Class::Build, Class::Edit]
            .map(|class| {
                decision(&Assessment::of(class, "x"), PermissionProfile::Restricted, &rules)
            })
            .into();
        use Decision::*;
        assert_eq!(decisions, [Allow, Allow, Deny, Deny]);
    }

    /// MS-067
    #[test]
    fn a_filtered_call_is_denied_even_when_it_is_allowlisted_and_approved() {
        let rules = Rules {
            allowlisted: true,
            approved: true,
            filtered: Some("`write` is not a tool of an architect".into()),
            ..Rules::default()
        };
        let call = Assessment::of(Class::Edit, "x");
        assert_eq!(decision(&call, PermissionProfile::Unrestricted, &rules), Decision::Deny);
    }

    /// MS-068
    #[test]
    fn a_session_rule_never_covers_what_destroys_or_touches_production() {
        let rules = Rules { session_rule: true, ..Rules::default() };
        for &class in Class::ALL {
            let found = decision(&Assessment::of(class, "x"), PermissionProfile::Trusted, &rules);
            assert_eq!(found == Decision::Allow, class <= Class::Publish, "{class}");
        }
    }

    #[test]
    fn read_only_modes_deny_every_effect_whoever_allowed_it() {
        let rules = Rules {
            allowlisted: true,
            auditor: true,
            session_rule: true,
            standing_rule: Some("x".into()),
            asks_removal: true,
            approved: true,
            ..Rules::default()
        };
        let profile = PermissionProfile::Unrestricted;
        for &work_mode in WorkMode::ALL.iter().filter(|mode| mode.is_read_only()) {
            let axes = Axes { work_mode, ..axes(profile) };
            for &class in Class::ALL {
                let verdict = decide(&Assessment::of(class, "does it"), &axes, &rules);
                let audits = work_mode == WorkMode::Review && class == Class::Test;
                let informs = audits
                    || matches!(class, Class::Read | Class::Note | Class::Ledger | Class::Delegate);
                assert_eq!(verdict.decision == Decision::Allow, informs, "{class} in {work_mode}");
                let named = verdict.reason.contains(&format!("work mode `{work_mode}`"))
                    && verdict.reason.contains("to `build`");
                assert!(informs || named, "{}", verdict.reason);
            }
            let reclassified = Rules { reclassified: true, ..Rules::default() };
            let verdict = decide(&Assessment::of(Class::Read, "x"), &axes, &reclassified);
            assert_eq!(verdict.by, Layer::WorkMode);
        }
    }

    #[test]
    fn removal_in_the_workspace_asks_where_a_person_wants_it() {
        let rules = Rules {
            asks_removal: true,
            standing_rule: Some("rm".into()),
            session_rule: true,
            ..Rules::default()
        };
        let call = Assessment::of(Class::Catastrophic, "x");
        let decisions: Vec<_> =
            PermissionProfile::ALL.iter().map(|&p| decision(&call, p, &rules)).collect();
        use Decision::*;
        assert_eq!(decisions, [Deny, Ask, Ask, Ask]);
        let approved = Rules { approved: true, ..rules };
        assert_eq!(decision(&call, PermissionProfile::Normal, &approved), Allow);
    }

    /// MS-015, MS-016
    #[test]
    fn run_control_and_profile_do_not_imply_each_other() {
        let read = Assessment::of(Class::Read, "x");
        let edit = Assessment::of(Class::Edit, "x");
        let autonomous = axes(PermissionProfile::Restricted);
        assert_eq!(decide(&read, &autonomous, &Rules::default()).decision, Decision::Allow);
        let manual =
            Axes { run_control: RunControl::Manual, ..axes(PermissionProfile::Unrestricted) };
        assert_eq!(decide(&edit, &manual, &Rules::default()).decision, Decision::Ask);
    }
}
