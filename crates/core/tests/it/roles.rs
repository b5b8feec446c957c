//! What a role changes, may do, and when it ends.

use windlass_core::axes::{Axes, PermissionProfile, Surface};
use windlass_core::policy::{Assessment, Class, CommandAnalysis, ShellCommand, Via};
use windlass_core::role::{Role, RoleChange};
use windlass_core::tool_name;

fn command(text: &str, class: Class) -> ShellCommand {
    ShellCommand {
        command: text.to_owned(),
        via: Via::Direct,
        assessment: Assessment::of(class, "x"),
        words: Vec::new(),
        confined: false,
        commands: Vec::new(),
    }
}

/// C-09: a role sets what is its own and leaves run control, surface and an executor's profile.
#[test]
fn a_role_is_a_preset_over_the_axes() {
    let talk = Axes::interactive(Surface::Web);
    let of = |role: Role| role.axes(talk).to_string();
    assert_eq!(of(Role::Architect), "plan | manual | restricted | smart");
    assert_eq!(of(Role::Executor), "build | manual | normal | smart");
    assert_eq!(of(Role::Auditor), "review | manual | restricted | deep");
    assert_eq!(
        Role::Executor.axes(Axes::headless()).permission_profile,
        PermissionProfile::Trusted
    );
}

/// AX-036, AX-050, AX-051, AX-053, AX-054, AX-056, AX-057, AX-058, AX-072: the configuration and the filter agree.
#[test]
fn the_tools_shown_of_a_role_are_those_of_its_filter() {
    for &role in Role::ALL {
        let config = role.config();
        let class = |name: &str| match name {
            tool_name::WRITE | tool_name::EDIT => Class::Edit,
            tool_name::BASH_KILL => Class::LocalCommand,
            tool_name::SPAWN_AGENT => Class::Delegate,
            tool_name::UPDATE_PLAN | tool_name::SAVE_MEMO | tool_name::ASK_USER => Class::Note,
            name if tool_name::LEDGER.contains(&name) => Class::Ledger,
            _ => Class::Read,
        };
        for name in &config.allowed_tools {
            let name = name.split('(').next().unwrap_or(name);
            assert!(role.has_tool(name, class(name)), "{role} {name}");
        }
        for name in &config.denied_tools {
            assert!(!role.has_tool(name, class(name)), "{role} {name}");
        }
        let unlisted = tool_name::LEDGER
            .iter()
            .filter(|name| !config.allowed_tools.iter().any(|allowed| allowed == *name));
        unlisted.for_each(|name| assert!(!role.has_tool(name, Class::Ledger), "{role} {name}"));
        assert_eq!(config.requires_commitment, role == Role::Executor);
    }
    assert!(!Role::Architect.has_tool(tool_name::BASH, Class::Read));
    assert!(!Role::Auditor.has_tool(tool_name::SPAWN_AGENT, Class::Delegate));
}

/// AX-052, AX-055, AX-059, AX-118
#[test]
fn each_role_has_its_exact_words() {
    let begins = |role: Role, lines: &[&str]| assert!(role.prompt().starts_with(&lines.join("\n")));
    begins(
        Role::Architect,
        &[
            "You are operating in ARCHITECT MODE.",
            "Your role is strategic planning and intent articulation.",
            "You can observe the codebase, articulate what should exist, and create commitments.",
            "You CANNOT write files, edit code, or execute commands directly.",
            "Create commitments for Executors to implement your plans.",
        ],
    );
    begins(
        Role::Executor,
        &[
            "You are operating in EXECUTOR MODE.",
            "Your role is implementation within the scope of your claimed commitment.",
            "Stay focused on the commitment. Capture evidence of your work.",
            "Do not expand scope beyond what was committed.",
        ],
    );
    begins(
        Role::Auditor,
        &[
            "You are operating in AUDITOR MODE.",
            "Your role is review and validation.",
            "You can read code, run tests, and render verdicts.",
            "You CANNOT modify code directly.",
            "Approve good work. Reject or request changes for problems.",
        ],
    );
    for offer in ["/executor mode and claim", "another agent claim", "Elaborate the plan"] {
        assert!(Role::Architect.prompt().contains(offer), "{offer}");
    }
}

/// AX-057: one part that does more spoils the whole command.
#[test]
fn an_auditor_runs_only_what_reads_tests_or_lints() {
    let of = |commands: Vec<ShellCommand>| CommandAnalysis::new(commands);
    let tests = of(vec![command("npm test", Class::Test), command("ls", Class::Read)]);
    assert_eq!(Role::Auditor.command_violation(&tests), None);
    let written = of(vec![command("npm test", Class::Test), command("> x", Class::Edit)]);
    let why = Role::Auditor.command_violation(&written).unwrap();
    assert!(why.contains("> x") && why.contains("edit"), "{why}");
    assert_eq!(Role::Executor.command_violation(&written), None);
}

#[test]
fn a_sub_agent_never_gets_a_looser_role() {
    use RoleChange::{Leave, Take};
    let (architect, auditor, executor) = (Role::Architect, Role::Auditor, Role::Executor);
    assert_eq!(Take(architect).tighten(None), Some(architect));
    assert_eq!(Take(executor).tighten(Some(auditor)), Some(auditor));
    assert_eq!(Leave.tighten(Some(architect)), Some(architect));
    assert_eq!(Take(auditor).tighten(Some(architect)), Some(architect));
    assert_eq!(Take(executor).tighten(None), None);
}
