//! What each action of a call does to the page, and what the agent is shown of it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use windlass_core::command::EvidenceType;
use windlass_core::outcome::{Evidence, Fact, Outcome};
use windlass_core::text::one_line;

use super::connection::Connection;
use super::element::LiveElement;
use super::judge::FormPermission;
use super::page::{Dialogs, Forms, Page};
use super::saved::FieldEntry;
use super::scene::{Scene, Tab};
use super::session::{BrowserSession, CallSite, TAB_TIMEOUT};
use super::view;
use super::{Action, Arguments, Error};
use crate::builtin::blocking;
use crate::output::neutralize;
use crate::pictures::keep_picture;

/// How long `wait` waits for a text.
const WAIT_LIMIT: Duration = Duration::from_secs(20);

impl BrowserSession {
    /// Carries out a call, as far as it was decided that it may.
    pub async fn perform(
        &mut self,
        connection: &Connection,
        arguments: &Arguments,
        place: &CallSite,
        permission: FormPermission,
    ) -> Result<Outcome, Error> {
        let before = self.tabs(connection).len();
        let forms = permission.forms();
        let dialogs = match arguments.accept_dialogs {
            Some(true) => Dialogs::Accept,
            Some(false) | None => Dialogs::Dismiss,
        };
        let page = match arguments.action {
            Action::Navigate if before == 0 => self.new_tab(connection).await?,
            _ => self.page(connection)?,
        };
        page.begin(forms, dialogs);
        let done = match self.check_form(&page, arguments, &permission).await {
            Ok(()) => self.act(&page, arguments, place, forms).await,
            Err(error) => Err(error),
        };
        let stopped = page.end();
        let mut outcome = match (done, stopped) {
            // It may have done more than send the form, so the page is shown as it is now.
            (Ok(_), Some(_)) => self.refusal(connection, place, Error::WouldSubmit).await?,
            (Err(error @ (Error::WouldSubmit | Error::FormChanged)), _) => {
                self.refusal(connection, place, error).await?
            }
            (Err(error), _) => return Err(error),
            (Ok(Done::Shown(outcome)), None) => *outcome,
            (Ok(Done::Look(words)), None) => {
                if arguments.action != Action::Close {
                    self.follow_new_tab(connection, before).await;
                }
                self.show_page(connection, place, &words).await?
            }
        };
        for news in self.downloads(connection, place).await {
            outcome.add_note(&format!("[{news}]"));
        }
        for note in std::mem::take(&mut self.news).into_iter().chain(self.take_notes(connection)) {
            outcome.add_note(&format!("[{}]", neutralize(&note)));
        }
        Ok(outcome)
    }

    /// A form is sent as it was decided about, or not at all.
    async fn check_form(
        &self,
        page: &Page<'_>,
        arguments: &Arguments,
        permission: &FormPermission,
    ) -> Result<(), Error> {
        let FormPermission::Granted(Some(form)) = permission else { return Ok(()) };
        let wanted = arguments.reference.as_deref().unwrap_or_default().trim_matches(['[', ']']);
        let documents = page.look().await?;
        let mut elements = documents.iter().flat_map(|document| &document.elements);
        let live = elements.find(|element| element.reference == wanted);
        match live.ok_or_else(|| Error::NoElement(wanted.to_owned()))?.form.as_ref() {
            Some(live) if live == form => Ok(()),
            Some(_) | None => Err(Error::FormChanged),
        }
    }

    /// Why nothing was sent, and the page as it is now.
    async fn refusal(
        &mut self,
        connection: &Connection,
        place: &CallSite,
        error: Error,
    ) -> Result<Outcome, Error> {
        let shown = self.show_page(connection, place, "").await?;
        let text = format!("Error: {error}.\n\n{}", shown.text);
        let display = Some(error.to_string());
        Ok(Outcome { display, ..Outcome::error(text) })
    }

    async fn act(
        &mut self,
        page: &Page<'_>,
        arguments: &Arguments,
        place: &CallSite,
        forms: Forms,
    ) -> Result<Done, Error> {
        let text = arguments.text.as_deref().unwrap_or_default();
        let look = |words: &str| Ok(Done::Look(words.to_owned()));
        match arguments.action {
            Action::Navigate => {
                page.go(arguments.url.as_deref().unwrap_or_default().trim()).await?;
                look("")
            }
            Action::Click => {
                find(page, arguments).await?.click(forms).await?;
                look("Clicked.")
            }
            Action::Type => {
                find(page, arguments).await?.write(text).await?;
                self.remember(page.connection, &page.target, entered(arguments, false));
                look("Typed.")
            }
            Action::Select => {
                let chosen = find(page, arguments).await?.choose(text).await?;
                self.remember(page.connection, &page.target, entered(arguments, true));
                look(&format!("Selected {}.", view::quoted(&chosen)))
            }
            Action::Submit => {
                find(page, arguments).await?.submit().await?;
                look("Submitted.")
            }
            Action::Scroll => {
                match found_if_named(page, arguments).await? {
                    Some(element) => element.scroll_to().await?,
                    None => page.scroll(text).await?,
                }
                look("Scrolled.")
            }
            Action::Wait => match text {
                "" => {
                    page.settle().await;
                    look("")
                }
                text => match page.wait_for(text, WAIT_LIMIT).await? {
                    true => look(&format!("The page shows {}.", view::quoted(text))),
                    false => look(&format!(
                        "The page has not shown {} within {} s.",
                        view::quoted(text),
                        WAIT_LIMIT.as_secs()
                    )),
                },
            },
            Action::Back => match page.back().await? {
                true => look(""),
                false => Err(Error::Refused("there is no page before this one".to_owned())),
            },
            Action::Tabs | Action::Close => self.change_tabs(page, arguments).await,
            Action::Text => Ok(Done::shown(self.data(page, &page.text().await?))),
            Action::Links => {
                let links = page.links().await?;
                let lines =
                    links.iter().map(|(name, url)| format!("{} {url}\n", view::quoted(name)));
                Ok(Done::shown(self.data(page, &lines.collect::<String>())))
            }
            Action::Evaluate => {
                let value = page.evaluate(text, forms).await?;
                Ok(Done::shown(self.data(page, &value)))
            }
            Action::Screenshot => {
                let found = found_if_named(page, arguments).await?;
                let bytes = page.picture(found.as_ref()).await?;
                Ok(Done::shown(keep_screenshot(place, bytes, self.url(page)).await?))
            }
        }
    }

    async fn change_tabs(&mut self, page: &Page<'_>, arguments: &Arguments) -> Result<Done, Error> {
        let tabs = self.tabs(page.connection);
        let chosen = match arguments.tab {
            None => None,
            Some(number) => {
                let tab = number.checked_sub(1).and_then(|at| tabs.get(at));
                Some(tab.ok_or_else(|| {
                    Error::Refused(format!("there is no tab {number}; there are {}", tabs.len()))
                })?)
            }
        };
        if arguments.action == Action::Tabs {
            let Some(tab) = chosen else {
                let line = |(at, tab): (usize, &Tab)| {
                    let mark =
                        if Some(&tab.target) == self.active.as_ref() { " (current)" } else { "" };
                    format!("tab {}{mark}: {}\n", at + 1, neutralize(&tab.url))
                };
                let lines: String = tabs.iter().enumerate().map(line).collect();
                return Ok(Done::shown(Outcome::ok(lines)));
            };
            self.active = Some(tab.target.clone());
            let params = json!({ "targetId": tab.target });
            page.connection.call(None, "Target.activateTarget", params).await?;
            return Ok(Done::Look(String::new()));
        }
        let target = chosen.map_or(&page.target, |tab| &tab.target).clone();
        let params = json!({ "targetId": target });
        page.connection.call(None, "Target.closeTarget", params).await?;
        let gone = |scene: &mut Scene| scene.tab(&target).is_none().then_some(());
        page.connection.until(TAB_TIMEOUT, gone).await;
        match tabs.len() {
            0 | 1 => Ok(Done::shown(Outcome::ok("The browser is closed."))),
            _ => Ok(Done::Look("Closed the tab.".to_owned())),
        }
    }

    /// Looks at a tab that the page has opened.
    async fn follow_new_tab(&mut self, connection: &Connection, before: usize) {
        let tabs = self.tabs(connection);
        if let Some(tab) = tabs.last().filter(|_| tabs.len() > before && before > 0) {
            self.active = Some(tab.target.clone());
            self.news.push(format!("the page has opened tab {}, which is shown", tabs.len()));
            Page::new(connection, tab).settle().await;
        }
    }
}

/// What an action came to.
enum Done {
    /// The page is shown as it is now, behind these words.
    Look(String),
    Shown(Box<Outcome>),
}

impl Done {
    fn shown(outcome: Outcome) -> Self {
        Self::Shown(Box::new(outcome))
    }
}

async fn find<'p>(page: &'p Page<'p>, arguments: &Arguments) -> Result<LiveElement<'p>, Error> {
    page.find(arguments.reference.as_deref().unwrap_or_default().trim_matches(['[', ']'])).await
}

async fn found_if_named<'p>(
    page: &'p Page<'p>,
    arguments: &Arguments,
) -> Result<Option<LiveElement<'p>>, Error> {
    match arguments.reference {
        Some(_) => find(page, arguments).await.map(Some),
        None => Ok(None),
    }
}

fn entered(arguments: &Arguments, is_choice: bool) -> FieldEntry {
    let reference = arguments.reference.as_deref().unwrap_or_default().trim_matches(['[', ']']);
    let text = arguments.text.clone().unwrap_or_default();
    FieldEntry { reference: reference.to_owned(), text, is_choice }
}

/// Keeps a picture for a model that can see, and as a file.
async fn keep_screenshot(place: &CallSite, bytes: Vec<u8>, url: String) -> Result<Outcome, Error> {
    let path = format!("{}/screenshot-{}.png", place.directory(), place.call);
    let (workspace, pictures, call) =
        (Arc::clone(&place.workspace), place.pictures.clone(), place.call);
    blocking(move || {
        let refused = |why: String| Error::Refused(format!("the picture {why}"));
        workspace
            .keep(call, &path, &mut bytes.as_slice())
            .map_err(|error| refused(format!("could not be saved: {error}")))?;
        let picture = keep_picture(&pictures, &bytes, &path).map_err(refused)?;
        let full = workspace.layout().in_full(&path);
        let text = format!("[{picture} of {}]\nSaved as {full}.", neutralize(&url));
        let evidence = Evidence {
            kind: EvidenceType::Screenshot,
            location: path,
            description: one_line(&format!("a picture of {url}"), 200),
        };
        let fingerprint = Some(format!("screenshot {}", picture.hash));
        let outcome = Outcome { pictures: vec![picture], fingerprint, ..Outcome::ok(text) };
        Ok(outcome.with(Fact::Evidence(evidence)))
    })
    .await
}
