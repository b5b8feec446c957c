//! One tab: going somewhere, and looking at it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_core::text::one_line;

use super::Error;
use super::connection::Connection;
use super::element::LiveElement;
use super::saved::FieldEntry;
use super::scene::Tab;
use super::view::{Document, MAX_LINES, MAX_NODES};

/// How long a page may load; what is there by then is shown.
const LOAD_TIMEOUT: Duration = Duration::from_secs(20);
/// How long it takes at most until something that was done leads to another page.
const REACTION: Duration = Duration::from_millis(150);
/// Frames of a page that are looked at.
const MAX_FRAMES: usize = 12;
/// The most text of one document that `text` gives.
const MAX_TEXT_CHARS: usize = 1 << 20;

const VIEW: &str = include_str!("view.js");

/// Resolves when a document has not changed for a moment: scripts build pages after they are loaded.
const QUIET: &str = "new Promise((done) => {
  let timer = setTimeout(done, 150);
  const watch = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(done, 150); });
  watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
  setTimeout(() => { watch.disconnect(); done(); }, 2000);
}).then(() => true)";

/// What happens to a form that is about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forms {
    Stop,
    Send,
}

/// How dialogs of a page are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialogs {
    Dismiss,
    Accept,
}

/// A tab of a browser that runs.
pub(super) struct Page<'a> {
    pub connection: &'a Connection,
    pub target: String,
    session: String,
}

impl<'a> Page<'a> {
    pub fn new(connection: &'a Connection, tab: &Tab) -> Self {
        Self { connection, target: tab.target.clone(), session: tab.session.clone() }
    }

    pub async fn call(&self, method: &str, params: Value) -> Result<Value, Error> {
        self.connection.call(Some(&self.session), method, params).await
    }

    fn with_tab<T>(&self, change: impl FnOnce(&mut Tab) -> T) -> Option<T> {
        self.connection.scene().tab(&self.target).map(change)
    }

    /// Waits until everything that happens in a new tab is reported: the page's own process takes its orders later than
    /// the browser does.
    pub async fn listen(&self) -> Result<(), Error> {
        self.call("Page.enable", json!({})).await.map(drop)
    }

    /// Takes note of where the page says that it is.
    pub fn is_at(&self, url: &str) {
        self.with_tab(|tab| tab.url = url.to_owned());
    }

    /// Begins something: what happens from here on is counted and noted for it.
    pub fn begin(&self, forms: Forms, dialogs: Dialogs) {
        self.with_tab(|tab| {
            tab.navigations = 0;
            tab.may_submit = forms == Forms::Send;
            tab.accepts_dialogs = dialogs == Dialogs::Accept;
            tab.stopped_submission = None;
        });
    }

    /// Ends what was begun; returns the form that was not sent, if there was one.
    pub fn end(&self) -> Option<String> {
        self.with_tab(|tab| {
            tab.may_submit = false;
            tab.accepts_dialogs = false;
            tab.stopped_submission.take()
        })
        .flatten()
    }

    /// Goes to an address and waits for the page.
    pub async fn go(&self, url: &str) -> Result<(), Error> {
        self.with_tab(|tab| tab.is_loading = true);
        let answer = self.call("Page.navigate", json!({ "url": url })).await?;
        match answer["errorText"].as_str() {
            // A download leads to no page.
            Some("net::ERR_ABORTED") => {
                self.with_tab(|tab| tab.is_loading = false);
                self.connection
                    .until(REACTION * 4, |scene| (!scene.downloads.is_empty()).then_some(()))
                    .await;
            }
            Some(error) => {
                self.with_tab(|tab| tab.is_loading = false);
                return Err(Error::NotReached(format!("{}: {error}", one_line(url, 200))));
            }
            None => self.settle().await,
        }
        Ok(())
    }

    /// Waits until the page is loaded and has come to rest, or has had its time.
    pub async fn settle(&self) {
        let target = &self.target;
        let loaded = self.connection.until(LOAD_TIMEOUT, |scene| match scene.tab(target) {
            Some(tab) => (!tab.is_loading).then_some(()),
            None => Some(()),
        });
        if loaded.await.is_none() {
            let text = format!("still loading after {} s", LOAD_TIMEOUT.as_secs());
            self.with_tab(|tab| tab.note(text));
        }
        let wanted = json!({ "expression": QUIET, "awaitPromise": true, "returnByValue": true });
        // A page that is left meanwhile gives no answer, and the next one is waited for by whoever looks.
        let _ = tokio::time::timeout(REACTION * 20, self.call("Runtime.evaluate", wanted)).await;
    }

    /// Waits for what something that was done leads to.
    pub async fn react(&self) {
        let target = &self.target;
        let left = |scene: &mut super::scene::Scene| {
            let tab = scene.tab(target)?;
            (tab.is_loading || tab.stopped_submission.is_some()).then_some(())
        };
        self.connection.until(REACTION, left).await;
        self.settle().await;
    }

    /// Goes back to the page before; false on the first page.
    pub async fn back(&self) -> Result<bool, Error> {
        let history = self.call("Page.getNavigationHistory", json!({})).await?;
        let current = history["currentIndex"].as_u64().unwrap_or_default();
        let Some(before) = current.checked_sub(1).and_then(|at| usize::try_from(at).ok()) else {
            return Ok(false);
        };
        let entry = &history["entries"][before];
        if entry["url"] == "about:blank" || entry["id"].is_null() {
            return Ok(false);
        }
        self.with_tab(|tab| tab.is_loading = true);
        let params = json!({ "entryId": entry["id"] });
        self.call("Page.navigateToHistoryEntry", params).await?;
        self.settle().await;
        Ok(true)
    }

    /// The frames of the page, the main one first, each with a world of ours in it.
    async fn worlds(&self) -> Result<Vec<i64>, Error> {
        let tree = self.call("Page.getFrameTree", json!({})).await?;
        let mut frames = Vec::new();
        let mut waiting = vec![&tree["frameTree"]];
        while let Some(tree) = waiting.pop() {
            frames.push(tree["frame"]["id"].clone());
            let children = tree["childFrames"].as_array();
            waiting.extend(children.into_iter().flatten().rev());
        }
        let mut worlds = Vec::new();
        for frame in frames.into_iter().take(MAX_FRAMES) {
            let wanted = json!({ "frameId": frame, "worldName": "windlass" });
            // A frame may be gone by now.
            if let Ok(made) = self.call("Page.createIsolatedWorld", wanted).await {
                worlds.extend(made["executionContextId"].as_i64());
            }
        }
        Ok(worlds)
    }

    /// The value of an expression in a world of ours.
    pub async fn value<T: DeserializeOwned>(
        &self,
        world: i64,
        expression: String,
    ) -> Result<T, Error> {
        let wanted = json!({ "expression": expression, "contextId": world, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", wanted).await?;
        check(&answer)?;
        serde_json::from_value(answer["result"]["value"].take())
            .map_err(|error| Error::Refused(format!("the page could not be read: {error}")))
    }

    /// What the page shows: its own document, then those of its frames.
    pub async fn look(&self) -> Result<Vec<Document>, Error> {
        let mut documents = Vec::new();
        for (at, world) in self.worlds().await?.into_iter().enumerate() {
            let read = self.value(world, view_expression(at, None)).await;
            match read {
                Ok(document) => documents.push(document),
                Err(error) if at == 0 => return Err(error),
                // A frame that cannot be read leaves the others as they are.
                Err(_) => {}
            }
        }
        Ok(documents)
    }

    /// The element that a ref names.
    pub async fn find(&self, reference: &str) -> Result<LiveElement<'_>, Error> {
        for (at, world) in self.worlds().await?.into_iter().enumerate() {
            let expression = view_expression(at, Some(reference));
            let wanted = json!({ "expression": expression, "contextId": world });
            let Ok(answer) = self.call("Runtime.evaluate", wanted).await else { continue };
            if let Some(object) = answer["result"]["objectId"].as_str() {
                return Ok(LiveElement::new(self, object, world));
            }
        }
        Err(Error::NoElement(reference.to_owned()))
    }

    /// Does again what was typed and chosen on a page that was loaded again.
    pub async fn enter_again(&self, entered: &[FieldEntry]) -> usize {
        let mut count = 0;
        for FieldEntry { reference, text, is_choice } in entered {
            let Ok(found) = self.find(reference).await else { continue };
            let done = match is_choice {
                true => found.choose(text).await.is_ok(),
                false => found.write(text).await.is_ok(),
            };
            count += usize::from(done);
        }
        count
    }

    /// Scrolls by most of a screen, or to an end.
    pub async fn scroll(&self, direction: &str) -> Result<(), Error> {
        let expression = match direction {
            "up" => "scrollBy(0, -innerHeight * 0.9)",
            "top" => "scrollTo(0, 0)",
            "bottom" => "scrollTo(0, document.documentElement.scrollHeight)",
            _ => "scrollBy(0, innerHeight * 0.9)",
        };
        self.call("Runtime.evaluate", json!({ "expression": expression })).await?;
        self.react().await;
        Ok(())
    }

    /// Waits until the page shows a text; false when it has not by then.
    pub async fn wait_for(&self, text: &str, limit: Duration) -> Result<bool, Error> {
        let looked = tokio::time::timeout(limit, async {
            loop {
                for world in self.worlds().await? {
                    let wanted =
                        format!("(document.body?.innerText ?? '').includes({})", json!(text));
                    if self.value(world, wanted).await.unwrap_or(false) {
                        return Ok(true);
                    }
                }
                tokio::time::sleep(REACTION).await;
            }
        });
        looked.await.unwrap_or(Ok(false))
    }

    /// All text of the page and its frames.
    pub async fn text(&self) -> Result<String, Error> {
        let mut texts = Vec::new();
        for world in self.worlds().await? {
            let wanted = format!("(document.body?.innerText ?? '').slice(0, {MAX_TEXT_CHARS})");
            texts.extend(
                self.value::<String>(world, wanted).await.ok().filter(|text| !text.is_empty()),
            );
        }
        Ok(texts.join("\n\n"))
    }

    /// All links of the page and its frames: what they are called, and where they lead.
    pub async fn links(&self) -> Result<Vec<(String, String)>, Error> {
        let expression = "[...new Map([...document.querySelectorAll('a[href], area[href]')].slice(0, 5000)
            .map((link) => [link.href, [(link.textContent || link.title || link.alt || '').replace(/\\s+/g, ' ')
            .trim().slice(0, 100), link.href.slice(0, 1000)]])).values()].slice(0, 1000)";
        let mut links: Vec<(String, String)> = Vec::new();
        for world in self.worlds().await? {
            let found: Result<Vec<(String, String)>, Error> =
                self.value(world, expression.to_owned()).await;
            links.extend(found.unwrap_or_default());
        }
        Ok(links)
    }

    /// A picture of what is in sight, or of an element.
    pub async fn picture(&self, element: Option<&LiveElement<'_>>) -> Result<Vec<u8>, Error> {
        let mut wanted = json!({ "format": "png" });
        if let Some(element) = element {
            let [x, y, width, height] = element.place().await?;
            wanted["clip"] = json!({ "x": x, "y": y, "width": width.clamp(1.0, 4000.0), "height": height.clamp(1.0, 4000.0), "scale": 1 });
            wanted["captureBeyondViewport"] = true.into();
        }
        let taken = self.call("Page.captureScreenshot", wanted).await?;
        let data = taken["data"].as_str().unwrap_or_default();
        STANDARD.decode(data).map_err(|_| Error::Refused("the picture is damaged".to_owned()))
    }

    /// The value of an expression of the agent's in the page itself, as JSON. Where forms are stopped, it may change
    /// nothing.
    pub async fn evaluate(&self, expression: &str, forms: Forms) -> Result<String, Error> {
        let may_change = forms == Forms::Send;
        let wanted = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": may_change,
            "throwOnSideEffect": !may_change, "timeout": 5_000, "userGesture": may_change,
        });
        let answer = self.call("Runtime.evaluate", wanted).await?;
        if let Err(error) = check(&answer) {
            return Err(match error.to_string().contains("side-effect") {
                true => Error::SideEffect,
                false => error,
            });
        }
        if may_change {
            self.react().await;
        }
        let result = &answer["result"];
        Ok(match result.get("value") {
            Some(Value::String(text)) => text.clone(),
            Some(value) => serde_json::to_string_pretty(value).unwrap_or_default(),
            None => result["description"].as_str().unwrap_or("undefined").to_owned(),
        })
    }
}

fn view_expression(frame: usize, find: Option<&str>) -> String {
    let prefix = if frame == 0 { String::new() } else { format!("f{frame}-") };
    let given =
        json!({ "prefix": prefix, "maxNodes": MAX_NODES, "maxLines": MAX_LINES, "find": find });
    format!("({})({given})", without_comment(VIEW))
}

/// A script without the comment at its top: an expression begins with what it is.
pub(super) fn without_comment(script: &str) -> String {
    let lines = script.lines().skip_while(|line| line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether an expression had a value, or what it threw.
pub(super) fn check(answer: &Value) -> Result<(), Error> {
    let details = &answer["exceptionDetails"];
    if details.is_null() {
        return Ok(());
    }
    let text = details["exception"]["description"].as_str().or(details["text"].as_str());
    Err(Error::Refused(one_line(text.unwrap_or("it failed"), 300)))
}
