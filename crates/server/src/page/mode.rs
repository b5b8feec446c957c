//! The mode of a session: a chip that is always in sight, and the panel that it opens (MS-002, MS-104, AX-096).

use std::fmt::Display;

use maud::{Markup, html};
use serde_json::json;
use windlass_core::axes::{Axes, ModelMode, PermissionProfile, RunControl, WorkMode};
use windlass_core::id::SessionId;
use windlass_core::role::Role;

use super::pieces;

/// The mode of a session, for one reader.
#[derive(Clone, Copy, Debug)]
pub struct Mode<'a> {
    pub session: SessionId,
    pub axes: &'a Axes,
    pub role: Option<Role>,
    /// Whether a commitment is claimed for the session.
    pub has_claim: bool,
    pub may_change: bool,
    /// Whether somebody has opted in to `unrestricted`.
    pub offers_unrestricted: bool,
}

impl Mode<'_> {
    /// The chip, and the panel for whoever may change the mode.
    pub fn draw(self) -> Markup {
        let words = html! {
            span.visually-hidden { "Mode: " }
            // Where the room ends, the end is cut off.
            @if let Some(role) = self.role { strong.role { (role.title()) } " " }
            (pieces::axes_words(self.axes))
        };
        html! {
            @if self.may_change {
                details.mode id="mode" {
                    summary.chip.axes title="Mode of this session" { (words) }
                    (self.panel())
                }
            } @else {
                span.chip.axes id="mode" title="Mode of this session" { (words) }
            }
        }
    }

    /// A choice is a slash command, as every surface has it.
    fn panel(self) -> Markup {
        let Self { session, axes, role, has_claim, .. } = self;
        let send = |command: &str, value: &dyn Display, is_now: bool| {
            let body = json!({ "line": format!("/{command} {value}") });
            html! {
                button.small type="button" aria-pressed=(is_now) data-post=(format!("/v1/sessions/{session}/commands"))
                    data-body=(body) { (value) }
            }
        };
        let is_offered = |profile: PermissionProfile| {
            profile != PermissionProfile::Unrestricted
                || self.offers_unrestricted
                || axes.permission_profile == profile
        };
        html! {
            div.panel {
                fieldset.roles {
                    legend { "Role" }
                    @for &one in Role::ALL { (switch(session, one, role == Some(one), has_claim)) }
                }
                fieldset {
                    legend { "Work mode" }
                    @for &one in WorkMode::ALL { (send("mode", &one, one == axes.work_mode)) }
                }
                fieldset {
                    legend { "Run control" }
                    @for &one in RunControl::ALL { (send("control", &one, one == axes.run_control)) }
                }
                fieldset {
                    legend { "Permissions" }
                    @for &one in PermissionProfile::ALL.iter().filter(|one| is_offered(**one)) {
                        (send("permission-profile", &one, one == axes.permission_profile))
                    }
                }
                fieldset {
                    legend { "Model" }
                    @for &one in ModelMode::ALL { (send("model-mode", &one, one == axes.model_mode)) }
                }
            }
        }
    }
}

/// Switches to a role, and says which tools change with it (AX-071).
fn switch(session: SessionId, role: Role, is_now: bool, has_claim: bool) -> Markup {
    let body = json!({ "line": format!("/{role}") });
    let config = role.config();
    let lost = lost_tools(role);
    let is_refused = config.requires_commitment && !has_claim;
    html! {
        div.role-choice {
            button.small type="button" aria-pressed=(is_now) disabled[is_refused]
                data-post=(format!("/v1/sessions/{session}/commands")) data-body=(body) { (role) }
            span.hint {
                @if is_refused { "Needs a claimed commitment; " a href="/commitments" { "claim one" } ". " }
                @match lost.is_empty() {
                    true => "All tools that the profile allows",
                    false => { "Without " (lost.join(", ")) },
                }
                @if role == Role::Auditor { "; bash only to read, test and lint" }
            }
        }
    }
}

/// The tools that an agent without a role has and one in this role has not.
fn lost_tools(role: Role) -> Vec<String> {
    let name = |tool: &String| tool.split('(').next().unwrap_or(tool).to_owned();
    let own: Vec<String> = role.config().allowed_tools.iter().map(name).collect();
    let all = Role::Executor.config().allowed_tools;
    all.into_iter().filter(|tool| !own.contains(tool)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(axes: &Axes, role: Option<Role>) -> Mode<'_> {
        let session = SessionId::derived("a", "b");
        let (has_claim, may_change, offers_unrestricted) = (false, true, false);
        Mode { session, axes, role, has_claim, may_change, offers_unrestricted }
    }

    /// MS-002, MS-104, AX-096
    #[test]
    fn the_chip_shows_the_axes_and_its_panel_changes_each() {
        let drawn = mode(&Axes::headless(), None).draw().0;
        assert!(drawn.contains(r#"<span class="t-good">build</span>"#), "{drawn}");
        for command in
            ["/mode plan", "/control manual", "/permission-profile normal", "/model-mode deep"]
        {
            assert!(
                drawn.contains(&format!("&quot;line&quot;:&quot;{command}&quot;")),
                "{command}"
            );
        }
        assert_eq!(drawn.matches(r#"aria-pressed="true""#).count(), 4);
    }

    /// AX-071, AX-096: three roles, each with the tools that change, and the one that is taken.
    #[test]
    fn the_panel_switches_roles_and_says_which_tools_change() {
        let axes = Axes::headless();
        let drawn = mode(&axes, Some(Role::Auditor)).draw().0;
        assert!(drawn.contains(r#"<strong class="role">Auditor</strong>"#), "{drawn}");
        for role in Role::ALL {
            assert!(drawn.contains(&format!("&quot;line&quot;:&quot;/{role}&quot;")), "{role}");
        }
        assert!(drawn.contains("Without write, edit, bash"), "{drawn}");
        assert!(drawn.contains("Needs a claimed commitment"), "{drawn}");
        let claimed = Mode { has_claim: true, ..mode(&axes, None) }.draw().0;
        assert!(!claimed.contains("Needs a claimed commitment") && !claimed.contains("disabled"));
    }

    /// MS-065
    #[test]
    fn the_panel_offers_only_what_is_not_refused() {
        let axes = Axes::headless();
        let unrestricted = "/permission-profile unrestricted";
        assert!(!mode(&axes, None).draw().0.contains(unrestricted));
        let opted_in = Mode { offers_unrestricted: true, ..mode(&axes, None) };
        assert!(opted_in.draw().0.contains(unrestricted));
        let looks = Mode { may_change: false, ..mode(&axes, None) }.draw().0;
        assert!(looks.contains("build") && !looks.contains("data-post"), "{looks}");
    }
}
