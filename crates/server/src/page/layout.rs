//! The frame of every page: head, navigation, and the line that says whether the page is up to date.

use maud::{DOCTYPE, Markup, html};
use serde_json::json;
use windlass_coordinator::Error;
use windlass_coordinator::SkillCommand;
use windlass_coordinator::slash::{Availability, SlashCommand, TABLE};
use windlass_core::id::QuestionId;
use windlass_core::shown::shown_line;

use super::assets;
use super::live::PageContent;
use super::pieces::{goal_line, icon, with_code};
use super::view::PageSources;
use crate::auth::{Access, User};
use crate::state::AppState;

/// The newest open questions, which the script receives one by one.
const NAMED_QUESTIONS: usize = 20;

/// One entry of the navigation.
struct NavEntry {
    path: &'static str,
    name: &'static str,
    icon: &'static str,
}

const NAVIGATION: &[NavEntry] = &[
    NavEntry { path: "/", name: "Sessions", icon: r#"<path d="M3 4h14v9H9l-4 3v-3H3z"/>"# },
    NavEntry {
        path: "/inbox",
        name: "Inbox",
        icon: r#"<path d="M3 11 5 4h10l2 7v5H3zM3 11h4l1 2h4l1-2h4"/>"#,
    },
    NavEntry {
        path: "/tasks",
        name: "Tasks",
        icon: r#"<path d="M4 5h1M4 10h1M4 15h1M8 5h8M8 10h8M8 15h8"/>"#,
    },
    NavEntry {
        path: "/plans",
        name: "Plans",
        icon: r#"<path d="M4 4h5v4H4zM11 12h5v4h-5zM6.5 8v6H11"/>"#,
    },
    NavEntry {
        path: "/commitments",
        name: "Commitments",
        icon: r#"<path d="M5 3h10v14l-5-3-5 3zM8 8l2 2 3-4"/>"#,
    },
    NavEntry {
        path: "/schedules",
        name: "Schedules",
        icon: r#"<circle cx="10" cy="10" r="7"/><path d="M10 6v4l3 2"/>"#,
    },
    NavEntry {
        path: "/workflows",
        name: "Workflows",
        icon: r#"<circle cx="5" cy="5" r="2"/><circle cx="15" cy="10" r="2"/><circle cx="5" cy="15" r="2"/><path d="M5 7v6M7 5h4q4 0 4 3"/>"#,
    },
    NavEntry {
        path: "/skills",
        name: "Skills",
        icon: r#"<path d="M10 3 3 6.5 10 10l7-3.5zM3 10l7 3.5L17 10M3 13.5 10 17l7-3.5"/>"#,
    },
    NavEntry {
        path: "/cost",
        name: "Cost",
        icon: r#"<path d="M4 16V9M8 16V5M12 16v-5M16 16V7"/>"#,
    },
    NavEntry { path: "/health", name: "Health", icon: r#"<path d="M3 10h4l2-5 3 10 2-5h3"/>"# },
    NavEntry {
        path: "/settings",
        name: "Settings",
        icon: r#"<path d="M4 6h7M15 6h1M4 14h1M9 14h7"/><circle cx="13" cy="6" r="2"/><circle cx="7" cy="14" r="2"/>"#,
    },
];

/// A whole page.
pub fn page(
    state: &AppState,
    view: &str,
    user: &User,
    live: &PageContent,
    content: &Markup,
) -> Markup {
    let tells_owner = state.notify.is_some() && user.name == state.auth.owner();
    html! {
        (DOCTYPE)
        html lang="en" data-version=(assets::version()) data-base=(state.base) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover, interactive-widget=resizes-content";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (live.title()) " · Windlass" }
                link rel="icon" id="icon" href=(assets::path("icon.svg")) type="image/svg+xml";
                link rel="stylesheet" href=(assets::path("style.css"));
                @for script in ["app.js", "composer.js", "keys.js"] { script src=(assets::path(script)) defer fetchpriority="low" {} }
                @if has_changes(view) { script src=(assets::path("review.js")) defer {} }
            }
            body data-view=(view) data-user=(user.name) data-access=(user.access) data-tells-owner[tells_owner] {
                a.skip href="#main" { "Skip to the content" }
                div.shell {
                    (navigation(view, live))
                    div.content {
                        div #banner role="status" aria-live="polite" {}
                        main #main tabindex="-1" { (content) }
                    }
                }
                div #said role="status" aria-live="polite" {}
                div.visually-hidden #news role="log" aria-live="polite" {}
                div.visually-hidden #last-reply aria-live="polite" {}
            }
        }
    }
}

/// Whether a page shows changes that can be commented on.
fn has_changes(view: &str) -> bool {
    let path = view.split('?').next().unwrap_or(view);
    path.starts_with("/tasks/") && path.ends_with("/changes")
}

fn navigation(view: &str, live: &PageContent) -> Markup {
    let path = view.split('?').next().unwrap_or(view);
    let is_here = |place: &NavEntry| match place.path {
        "/" => path == "/" || path.starts_with("/sessions"),
        other => path == other || path.starts_with(&format!("{other}/")),
    };
    html! {
        nav.places aria-label="Pages" {
            a.brand href="/" aria-label="Windlass, first page" {
                svg viewBox="0 0 24 24" aria-hidden="true" {
                    circle cx="12" cy="12" r="5" {}
                    path d="M12 2v5M12 17v5M2 12h5M17 12h5" {}
                }
                span { "Windlass" }
            }
            ul {
                @for place in NAVIGATION {
                    li {
                        a href=(place.path) aria-current=[is_here(place).then_some("page")] {
                            (icon(place.icon))
                            span.name { (place.name) }
                            @if place.path == "/inbox" { (live.place("inbox-count")) }
                        }
                    }
                }
            }
            div.nav-tools {
                button.find type="button" data-palette title="Find a page, an action or a command" hidden {
                    (icon(r#"<circle cx="9" cy="9" r="5"/><path d="m13 13 4 4"/>"#)) span.word { "Find" } kbd {}
                }
                button.quiet type="button" data-keys hidden { "Keys" kbd { "?" } }
            }
        }
    }
}

/// Adds to a page what every page shows: the questions that wait.
pub fn with_shell(live: PageContent, reading: &PageSources<'_>) -> Result<PageContent, Error> {
    let mut open = Vec::new();
    for (question, task) in reading.coordinator.inbox().open_ids()? {
        if let Some(row) = reading.coordinator.tasks().get(task)?
            && reading.may_see_session(row.session_id)?
        {
            open.push((question, goal_line(&row.goal)));
        }
    }
    Ok(live.with_fragment("inbox-count", inbox_count(&open)))
}

/// How many questions wait, and what for; the script puts it into the title, the icon and a notification.
fn inbox_count(open: &[(QuestionId, String)]) -> Markup {
    let newest: Vec<_> = open.iter().rev().take(NAMED_QUESTIONS).collect();
    html! {
        span.badge data-count=(open.len()) data-open=(json!(newest)) hidden[open.is_empty()] {
            (open.len()) span.visually-hidden { " open" }
        }
    }
}

/// Where a message to a session is written; `commands` is what a slash offers.
pub fn composer(session: &str, prefill: &str, commands: &Markup) -> Markup {
    html! {
        form.composer #composer data-session=(session) {
            div #reply hidden {}
            label.visually-hidden for="message" { "Message" }
            textarea #message name="message" rows="1" placeholder="Message, or / for commands"
                autocomplete="off" spellcheck="true" aria-describedby="composer-hint" { (prefill) }
            div #attached.attached hidden {}
            div.composer-row {
                (attach())
                span #composer-hint { kbd { "Enter" } span.when-idle { " sends, " } span.when-busy { " queues, " } kbd { "Shift Enter" } " begins a line, " kbd { "@" } " names a file" }
                span.send-buttons {
                    button.send-now type="submit" name="now" { "Send now" }
                    button.primary type="submit" { span.when-idle { "Send" } span.when-busy { "Queue" } }
                }
            }
            (commands)
            ul #files role="listbox" aria-label="Files" hidden {}
        }
    }
}

/// What adds pictures to a message; they can be pasted and dropped too.
pub fn attach() -> Markup {
    html! {
        label.button.small.attach {
            "Picture" input.visually-hidden #pictures type="file" accept="image/png,image/jpeg,image/gif,image/webp" multiple;
        }
    }
}

/// The slash commands, the same for every surface (MS-175), that somebody may use, and the skills that a person may call.
/// The script shows those that fit.
pub fn commands(access: Access, skills: &[SkillCommand]) -> Markup {
    let may_use = |command: &&SlashCommand| match command.availability {
        Availability::Everywhere => true,
        Availability::Admins => access == Access::Admin,
    };
    html! {
        ul #completions role="listbox" aria-label="Commands and skills" hidden {
            @for command in TABLE.iter().filter(may_use) {
                li role="option" aria-selected="false" data-name=(command.name) {
                    code { (command.usage()) } span { (with_code(command.help)) }
                }
            }
            // A command has the name before a skill.
            @for skill in skills.iter().filter(|skill| TABLE.iter().all(|command| command.name != skill.name)) {
                li role="option" aria-selected="false" data-name=(skill.name) data-skill {
                    code { "/" (shown_line(&skill.name)) } span dir="auto" { (shown_line(&skill.description)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MS-175
    #[test]
    fn the_page_offers_every_command_that_the_reader_may_use() {
        let (all, own) = (commands(Access::Admin, &[]).0, commands(Access::Operator, &[]).0);
        for command in TABLE {
            let name = format!(r#"data-name="{}""#, command.name);
            assert!(all.contains(&name), "{}", command.name);
            let is_everywhere = command.availability == Availability::Everywhere;
            assert_eq!(own.contains(&name), is_everywhere, "{}", command.name);
        }
    }
}
