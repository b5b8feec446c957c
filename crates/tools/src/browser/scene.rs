//! What has happened in a browser: its tabs, what they complained about, what was stopped. Each event is answered by
//! orders; nothing here waits.
//!
//! Invariants:
//! - A request for an address that the rules refuse is stopped before it is sent.
//! - A form is submitted only while a submission is allowed. Requests of a page's own scripts are not submissions; they
//!   are logged.
//! - Everything that is kept is bounded.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use url::Url;
use windlass_core::text::one_line;

use super::connection::{BrowserEvent, CdpCommand};
use crate::web::Reach;

/// Tabs of one agent; a page that opens more has them closed.
pub(super) const MAX_TABS: usize = 8;
/// Pages that a tab may go through in one action: more is a loop of redirects.
pub(super) const MAX_NAVIGATIONS: u32 = 20;
/// The largest download.
const MAX_DOWNLOAD_BYTES: f64 = 256.0 * 1024.0 * 1024.0;
/// Notes of one tab that wait to be read.
const MAX_NOTES: usize = 20;
/// Requests of a tab whose addresses are remembered, to name those that fail.
const MAX_REQUESTS: usize = 500;
/// Characters of a note.
const NOTE_WIDTH: usize = 300;
/// What a page is laid out for.
const VIEWPORT: (u32, u32) = (1280, 900);

/// A tab and what is known of its page.
#[derive(Clone, Debug, Default)]
pub(super) struct Tab {
    /// Its id, which is also that of its main frame.
    pub target: String,
    pub session: String,
    /// Whose it is.
    pub context: String,
    pub url: String,
    pub is_loading: bool,
    /// Pages that it has gone through since somebody began to count.
    pub navigations: u32,
    /// Whether a form may be submitted now.
    pub may_submit: bool,
    /// Whether a question of a page is answered with yes.
    pub accepts_dialogs: bool,
    /// What the agent should know of what happened.
    notes: VecDeque<String>,
    notes_left_out: usize,
    /// The frames that are about to submit a form.
    submitting: Vec<String>,
    /// The submission that was stopped last.
    pub stopped_submission: Option<String>,
    requests: VecDeque<(String, String)>,
}

/// A file that a page has offered.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Download {
    pub name: String,
    pub url: String,
    pub state: DownloadState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DownloadState {
    Running,
    Done,
    Stopped,
}

/// Everything that is known of a browser.
pub(super) struct Scene {
    reach: Reach,
    tabs: Vec<Tab>,
    pub downloads: BTreeMap<String, Download>,
}

impl Scene {
    /// Nothing yet; requests will be judged by these rules.
    pub fn new(reach: Reach) -> Self {
        Self { reach, tabs: Vec::new(), downloads: BTreeMap::new() }
    }

    /// The tabs of one agent, in the order in which they were opened.
    pub fn tabs(&self, context: &str) -> Vec<&Tab> {
        self.tabs.iter().filter(|tab| tab.context == context).collect()
    }

    pub fn tab(&mut self, target: &str) -> Option<&mut Tab> {
        self.tabs.iter_mut().find(|tab| tab.target == target)
    }

    /// Takes in what has happened; returns what is to be sent for it.
    pub fn on_event(&mut self, event: &BrowserEvent) -> Vec<CdpCommand> {
        let params = &event.params;
        match (event.method.as_str(), event.session.as_deref()) {
            ("Target.attachedToTarget", _) => return self.on_target(params),
            ("Target.detachedFromTarget", _) => {
                let session = text(&params["sessionId"]);
                self.tabs.retain(|tab| tab.session != session);
            }
            ("Browser.downloadWillBegin", _) => self.on_download(params),
            ("Browser.downloadProgress", _) => return self.on_progress(params),
            ("Fetch.requestPaused", Some(session)) => return self.on_request(session, params),
            (method, Some(session)) => {
                if let Some(tab) = self.tabs.iter_mut().find(|tab| tab.session == session) {
                    return tab.on_event(method, params);
                }
            }
            (_, None) => {}
        }
        Vec::new()
    }

    /// A new tab is made ready before its first request; anything else is let run.
    fn on_target(&mut self, params: &Value) -> Vec<CdpCommand> {
        let (session, info) = (text(&params["sessionId"]), &params["targetInfo"]);
        let order = |method, params| CdpCommand { session: Some(session.clone()), method, params };
        let run = order("Runtime.runIfWaitingForDebugger", json!({}));
        if info["type"] != "page" {
            return vec![run];
        }
        let (target, context) = (text(&info["targetId"]), text(&info["browserContextId"]));
        if self.tabs(&context).len() >= MAX_TABS {
            if let Some(opener) = self.tabs.iter_mut().find(|tab| tab.context == context) {
                opener.note(format!("a new tab was closed: {MAX_TABS} are the most"));
            }
            let close = CdpCommand {
                session: None,
                method: "Target.closeTarget",
                params: json!({ "targetId": target }),
            };
            return vec![close, run];
        }
        let url = text(&info["url"]);
        self.tabs.push(Tab { target, session: session.clone(), context, url, ..Tab::default() });
        let (width, height) = VIEWPORT;
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        let patterns = json!({ "patterns": [{ "urlPattern": "*" }] });
        vec![
            order("Page.enable", json!({})),
            order("Runtime.enable", json!({})),
            order("Network.enable", json!({})),
            order("Log.enable", json!({})),
            order("Fetch.enable", patterns),
            order("Emulation.setDeviceMetricsOverride", size),
            run,
        ]
    }

    /// Lets a request pass, or stops it.
    fn on_request(&mut self, session: &str, params: &Value) -> Vec<CdpCommand> {
        let request = params["requestId"].clone();
        let Some(tab) = self.tabs.iter_mut().find(|tab| tab.session == session) else {
            return Vec::new();
        };
        let url = params["request"]["url"].as_str().unwrap_or_default();
        let order =
            |method, params| CdpCommand { session: Some(session.to_owned()), method, params };
        if let Some(why) = refusal(&self.reach, url) {
            tab.note(format!("request refused: {}: {why}", printable_url(url)));
            let stop = json!({ "requestId": request, "errorReason": "AccessDenied" });
            return vec![order("Fetch.failRequest", stop)];
        }
        if tab.is_submission(params) && !tab.may_submit {
            tab.stopped_submission = Some(url.to_owned());
            tab.is_loading = false;
            let stop = json!({ "requestId": request, "errorReason": "Aborted" });
            return vec![order("Fetch.failRequest", stop)];
        }
        vec![order("Fetch.continueRequest", json!({ "requestId": request }))]
    }

    fn on_download(&mut self, params: &Value) {
        let download = Download {
            name: text(&params["suggestedFilename"]),
            url: text(&params["url"]),
            state: DownloadState::Running,
        };
        self.downloads.insert(text(&params["guid"]), download);
    }

    fn on_progress(&mut self, params: &Value) -> Vec<CdpCommand> {
        let guid = text(&params["guid"]);
        let Some(download) = self.downloads.get_mut(&guid) else { return Vec::new() };
        match params["state"].as_str() {
            Some("completed") => download.state = DownloadState::Done,
            Some("canceled") => download.state = DownloadState::Stopped,
            _ if params["receivedBytes"].as_f64().is_some_and(|sum| sum > MAX_DOWNLOAD_BYTES) => {
                download.state = DownloadState::Stopped;
                let params = json!({ "guid": guid });
                return vec![CdpCommand {
                    session: None,
                    method: "Browser.cancelDownload",
                    params,
                }];
            }
            _ => {}
        }
        Vec::new()
    }
}

impl Tab {
    fn on_event(&mut self, method: &str, params: &Value) -> Vec<CdpCommand> {
        let is_main = params["frameId"].as_str() == Some(&self.target);
        match method {
            "Page.frameStartedLoading" if is_main => self.is_loading = true,
            "Page.frameStoppedLoading" if is_main => self.is_loading = false,
            "Page.frameNavigated" if params["frame"]["parentId"].is_null() => {
                self.url = text(&params["frame"]["url"]);
                self.navigations += 1;
                self.submitting.clear();
                if self.navigations == MAX_NAVIGATIONS {
                    self.note(format!(
                        "stopped after {MAX_NAVIGATIONS} pages: they lead in a circle"
                    ));
                }
                if self.navigations >= MAX_NAVIGATIONS {
                    self.is_loading = false;
                    return vec![self.order("Page.stopLoading", json!({}))];
                }
            }
            "Page.navigatedWithinDocument" if is_main => self.url = text(&params["url"]),
            "Page.frameRequestedNavigation" => self.on_navigation(params),
            "Page.javascriptDialogOpening" => return vec![self.on_dialog(params)],
            "Inspector.targetCrashed" => {
                self.is_loading = false;
                self.note("the page crashed, likely for want of memory".to_owned());
            }
            "Runtime.exceptionThrown" => {
                let details = &params["exceptionDetails"];
                let text =
                    details["exception"]["description"].as_str().or(details["text"].as_str());
                self.note(format!("console error: {}", text.unwrap_or_default()));
            }
            "Runtime.consoleAPICalled" if params["type"] == "error" => {
                let said = |arg: &Value| match arg["value"].as_str() {
                    Some(text) => text.to_owned(),
                    None => text(&arg["description"]),
                };
                let words: Vec<String> =
                    params["args"].as_array().into_iter().flatten().map(said).collect();
                self.note(format!("console error: {}", words.join(" ")));
            }
            // What the network says is noted with its request.
            "Log.entryAdded"
                if params["entry"]["level"] == "error"
                    && params["entry"]["source"] != "network" =>
            {
                let text = params["entry"]["text"].as_str().unwrap_or_default();
                self.note(format!("console error: {text}"));
            }
            "Network.requestWillBeSent" => self.on_sent(params),
            "Network.responseReceived" => {
                let (status, url) =
                    (&params["response"]["status"], text(&params["response"]["url"]));
                // The browser asks for an icon on its own.
                let is_icon = printable_url(&url).ends_with("/favicon.ico");
                if !is_icon && status.as_f64().is_some_and(|status| status >= 400.0) {
                    self.note(format!("request failed: {}: status {status}", printable_url(&url)));
                }
            }
            "Network.loadingFailed" if params["canceled"] != true => {
                let id = params["requestId"].as_str().unwrap_or_default();
                let url = self.requests.iter().rev().find(|(known, _)| known == id);
                if let Some((_, url)) = url {
                    let why = params["errorText"].as_str().unwrap_or_default();
                    // What was refused or stopped here is noted already.
                    if why != "net::ERR_ACCESS_DENIED" && why != "net::ERR_ABORTED" {
                        self.note(format!("request failed: {url}: {why}"));
                    }
                }
            }
            _ => {}
        }
        Vec::new()
    }

    fn on_navigation(&mut self, params: &Value) {
        let frame = text(&params["frameId"]);
        self.submitting.retain(|known| *known != frame);
        if params["reason"].as_str().is_some_and(|reason| reason.starts_with("formSubmission")) {
            self.submitting.push(frame);
        }
    }

    fn on_sent(&mut self, params: &Value) {
        if self.requests.len() == MAX_REQUESTS {
            self.requests.pop_front();
        }
        let (request, id) = (&params["request"], text(&params["requestId"]));
        let (method, url) = (text(&request["method"]), text(&request["url"]));
        if !matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS") {
            tracing::info!(%method, url = %printable_url(&url), "A page in the browser sent a request");
        }
        self.requests.push_back((id, format!("{method} {}", printable_url(&url))));
    }

    /// A page's question is answered at once: nothing else happens in it before.
    fn on_dialog(&mut self, params: &Value) -> CdpCommand {
        let kind = params["type"].as_str().unwrap_or_default();
        // There is nothing to choose in an alert, and a page that asks whether it may be left is left.
        let accept = self.accepts_dialogs || matches!(kind, "alert" | "beforeunload");
        let words = match (kind, accept) {
            ("alert", _) => "closed",
            (_, true) => "answered with OK",
            (_, false) => "answered with Cancel; set `accept_dialogs` to answer with OK",
        };
        let message = one_line(params["message"].as_str().unwrap_or_default(), 200);
        self.note(format!("dialog ({kind}) {message:?}: {words}"));
        let text = params["defaultPrompt"].as_str().unwrap_or_default();
        self.order("Page.handleJavaScriptDialog", json!({ "accept": accept, "promptText": text }))
    }

    /// Whether a request sends a form: a page that is asked for with anything but GET, or by a form.
    fn is_submission(&mut self, params: &Value) -> bool {
        if params["resourceType"] != "Document" {
            return false;
        }
        let frame = text(&params["frameId"]);
        let by_form = self.submitting.contains(&frame);
        // A form may lead through redirects; those are not submissions of their own.
        self.submitting.retain(|known| *known != frame);
        by_form || !matches!(params["request"]["method"].as_str(), Some("GET" | "HEAD"))
    }

    fn order(&self, method: &'static str, params: Value) -> CdpCommand {
        CdpCommand { session: Some(self.session.clone()), method, params }
    }

    /// Keeps something that the agent should know.
    pub fn note(&mut self, text: String) {
        let text = one_line(&text, NOTE_WIDTH);
        if self.notes.contains(&text) {
            return;
        }
        match self.notes.len() < MAX_NOTES {
            true => self.notes.push_back(text),
            false => self.notes_left_out += 1,
        }
    }

    /// What was noted since the last time somebody asked.
    pub fn take_notes(&mut self) -> Vec<String> {
        let mut notes: Vec<String> = std::mem::take(&mut self.notes).into();
        if std::mem::take(&mut self.notes_left_out) > 0 {
            notes.push("more was noted and is left out".to_owned());
        }
        notes
    }
}

/// Why an address is not asked for, if it is not. What a page holds itself needs no network.
fn refusal(reach: &Reach, url: &str) -> Option<String> {
    match Url::parse(url) {
        Ok(url) if matches!(url.scheme(), "data" | "blob" | "about") => None,
        Ok(url) => reach.judge(&url).err().map(|error| error.to_string()),
        Err(_) => Some("it is not an address".to_owned()),
    }
}

/// An address as a note shows it: what is behind its `?` may be long or secret.
fn printable_url(url: &str) -> String {
    one_line(url.split(['?', '#']).next().unwrap_or_default(), 120)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use windlass_sandbox::network::{AddressRules, HostRules};

    use super::*;

    fn scene() -> Scene {
        let mut scene =
            Scene::new(Reach::new(AddressRules { allowed: Vec::new() }, HostRules::Any));
        attach(&mut scene, "1");
        scene
    }

    fn attach(scene: &mut Scene, id: &str) -> Vec<CdpCommand> {
        let info = json!({ "type": "page", "targetId": id, "browserContextId": "c", "url": "" });
        let params = json!({ "sessionId": format!("s{id}"), "targetInfo": info });
        scene.on_event(&BrowserEvent {
            session: None,
            method: "Target.attachedToTarget".into(),
            params,
        })
    }

    fn happens(scene: &mut Scene, method: &str, params: Value) -> Vec<&'static str> {
        let event = BrowserEvent { session: Some("s1".into()), method: method.into(), params };
        scene.on_event(&event).into_iter().map(|order| order.method).collect()
    }

    fn asks(scene: &mut Scene, method: &str, url: &str, kind: &str) -> Vec<&'static str> {
        let params = json!({
            "requestId": "r", "resourceType": kind, "frameId": "1",
            "request": { "url": url, "method": method },
        });
        happens(scene, "Fetch.requestPaused", params)
    }

    #[test]
    fn a_request_is_judged_by_its_address_and_scheme() {
        let mut scene = scene();
        assert_eq!(
            asks(&mut scene, "GET", "https://example.org/", "Document"),
            ["Fetch.continueRequest"]
        );
        assert_eq!(
            asks(&mut scene, "GET", "data:text/plain,x", "Image"),
            ["Fetch.continueRequest"]
        );
        for url in [
            "http://127.0.0.1/",
            "http://169.254.169.254/latest/meta-data/",
            "http://[::1]:8080/",
            "http://2130706433/",
            "file:///etc/passwd",
            "chrome://settings/",
            "nonsense",
        ] {
            assert_eq!(asks(&mut scene, "GET", url, "Fetch"), ["Fetch.failRequest"], "{url}");
        }
        assert_eq!(scene.tab("1").unwrap().take_notes().len(), 7);
    }

    #[test]
    fn a_form_is_sent_only_while_that_is_allowed() {
        let mut scene = scene();
        let url = "https://example.org/send";
        assert_eq!(asks(&mut scene, "POST", url, "Fetch"), ["Fetch.continueRequest"]);
        assert_eq!(asks(&mut scene, "POST", url, "Document"), ["Fetch.failRequest"]);
        let requested = json!({ "frameId": "1", "reason": "formSubmissionGet", "url": url });
        happens(&mut scene, "Page.frameRequestedNavigation", requested.clone());
        assert_eq!(asks(&mut scene, "GET", url, "Document"), ["Fetch.failRequest"]);
        let tab = scene.tab("1").unwrap();
        assert_eq!(tab.stopped_submission.take().as_deref(), Some(url));
        tab.may_submit = true;
        happens(&mut scene, "Page.frameRequestedNavigation", requested);
        assert_eq!(asks(&mut scene, "GET", url, "Document"), ["Fetch.continueRequest"]);
        assert_eq!(asks(&mut scene, "POST", url, "Document"), ["Fetch.continueRequest"]);
    }

    #[test]
    fn pages_that_lead_in_a_circle_are_stopped() {
        let mut scene = scene();
        let navigated = || json!({ "frame": { "id": "1", "url": "https://a.example/" } });
        for _ in 1..MAX_NAVIGATIONS {
            assert!(happens(&mut scene, "Page.frameNavigated", navigated()).is_empty());
        }
        assert_eq!(happens(&mut scene, "Page.frameNavigated", navigated()), ["Page.stopLoading"]);
    }

    #[test]
    fn dialogs_are_answered_and_notes_are_bounded() {
        let mut scene = scene();
        let opened = json!({ "type": "confirm", "message": "Really?" });
        assert_eq!(
            happens(&mut scene, "Page.javascriptDialogOpening", opened),
            ["Page.handleJavaScriptDialog"]
        );
        for number in 0..100 {
            let args = json!([{ "type": "string", "value": format!("no {number}") }]);
            let said = json!({ "type": "error", "args": args });
            happens(&mut scene, "Runtime.consoleAPICalled", said);
        }
        let notes = scene.tab("1").unwrap().take_notes();
        assert!(
            notes[0].starts_with("dialog (confirm) \"Really?\": answered with Cancel"),
            "{notes:?}"
        );
        assert_eq!(notes.len(), MAX_NOTES + 1);
    }

    #[test]
    fn a_page_cannot_open_tabs_without_end() {
        let mut scene = scene();
        for number in 2..=MAX_TABS {
            assert_eq!(attach(&mut scene, &number.to_string()).len(), 7);
        }
        let orders = attach(&mut scene, "9");
        assert_eq!(orders[0].method, "Target.closeTarget");
        assert_eq!(scene.tabs("c").len(), MAX_TABS);
    }
}
