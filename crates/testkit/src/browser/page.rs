//! One tab: where it is, what it shows, what a person does in it.

use std::path::Path;

use serde_json::{Value, json};

use super::{Browser, text};

/// How long a page may take to show what a test waits for, in milliseconds.
const PATIENCE_MS: u64 = 30_000;

/// A tab of a browser.
pub struct Page<'a> {
    browser: &'a Browser,
    target: String,
    session: String,
}

/// A tab closes with its test: an open one keeps drawing and listening, and slows down every test after it.
impl Drop for Page<'_> {
    fn drop(&mut self) {
        let close = json!({ "targetId": self.target });
        // Nobody waits for the answer, and a browser that has ended has closed it already.
        let _ = self.browser.send(None, "Target.closeTarget", close);
    }
}

impl<'a> Page<'a> {
    pub(super) fn open(browser: &'a Browser, target: String, session: String) -> Self {
        let page = Self { browser, target, session };
        for domain in ["Page", "Runtime", "Network", "Log"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        // Tests run side by side in one browser, which has one focused page.
        page.call("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        page.resize(1280, 900);
        page
    }

    /// Sends a command of the debugging protocol.
    pub fn call(&self, method: &str, params: Value) -> Value {
        self.browser.call(Some(&self.session), method, params)
    }

    /// Goes to an address and waits until the page and its script are there.
    pub fn go(&self, url: &str) {
        let gone = self.call("Page.navigate", json!({ "url": url }));
        assert!(gone.get("errorText").is_none(), "{url}: {}", gone["errorText"]);
        self.ready();
    }

    /// Loads the page again.
    pub fn reload(&self) {
        self.eval("window.isOld = true");
        self.call("Page.reload", json!({}));
        self.until("!window.isOld");
        self.ready();
    }

    fn ready(&self) {
        self.until("document.readyState === 'complete'");
    }

    /// The value of an expression. A promise is waited for.
    pub fn eval(&self, expression: &str) -> Value {
        let wanted =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let asked = self.browser.try_call(Some(&self.session), "Runtime.evaluate", wanted);
        let mut found = match asked {
            Ok(found) => found,
            // What it does leads to another page, so it has no value.
            Err(error) if error["message"].to_string().contains("navigated") => return Value::Null,
            Err(error) => panic!("{expression}: {error}"),
        };
        let problem = &found["exceptionDetails"];
        assert!(problem.is_null(), "{expression}: {problem}");
        found["result"]["value"].take()
    }

    /// Waits until an expression is true. A page that is on its way to another is asked again.
    pub fn until(&self, expression: &str) {
        let began = std::time::Instant::now();
        loop {
            let wanted =
                json!({ "expression": format!("Boolean({expression})"), "returnByValue": true });
            let found = self.browser.try_call(Some(&self.session), "Runtime.evaluate", wanted);
            if found.is_ok_and(|found| found["result"]["value"] == true) {
                return;
            }
            if began.elapsed().as_millis() > u128::from(PATIENCE_MS) {
                panic!("waited too long for `{expression}` on:\n{}", self.text());
            }
            std::thread::sleep(std::time::Duration::from_millis(25));
        }
    }

    /// Waits until the page shows a text.
    pub fn shows(&self, words: &str) {
        self.until(&format!("document.body?.innerText.includes({})", json!(words)));
    }

    /// Waits until the page no longer shows a text.
    pub fn hides(&self, words: &str) {
        self.until(&format!("!document.body?.innerText.includes({})", json!(words)));
    }

    /// What a reader sees.
    pub fn text(&self) -> String {
        text(&self.eval("document.body?.innerText ?? ''"))
    }

    /// Clicks the first element that a selector finds and that holds these words.
    pub fn click(&self, selector: &str, words: &str) {
        let find = format!(
            "[...document.querySelectorAll({})].find(one => one.textContent.includes({}))",
            json!(selector),
            json!(words)
        );
        self.until(&find);
        self.eval(&format!("{find}.click()"));
    }

    /// Writes into a field, as a keyboard does.
    pub fn write(&self, selector: &str, words: &str) {
        self.until(&format!("document.querySelector({})", json!(selector)));
        self.eval(&format!("document.querySelector({}).focus()", json!(selector)));
        self.call("Input.insertText", json!({ "text": words }));
    }

    /// Presses a key, such as `Enter`, `?` or `Control+k`.
    pub fn press(&self, key: &str) {
        const CONTROL: u32 = 2;
        let (modifiers, key) = match key.strip_prefix("Control+") {
            Some(key) => (CONTROL, key),
            None => (0, key),
        };
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            "ArrowUp" => (38, ""),
            "ArrowDown" => (40, ""),
            letter if modifiers == 0 => (0, letter),
            _ => (0, ""),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "modifiers": modifiers, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Chooses a file in a field for files, as the browser's own dialog does.
    pub fn choose_file(&self, selector: &str, file: &Path) {
        let wanted =
            json!({ "expression": format!("document.querySelector({})", json!(selector)) });
        let found = self.call("Runtime.evaluate", wanted);
        let object = &found["result"]["objectId"];
        self.call("DOM.setFileInputFiles", json!({ "files": [file], "objectId": object }));
    }

    /// Gives the page a size.
    pub fn resize(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Says that the reader wants a dark page, or a light one.
    pub fn scheme(&self, scheme: &str) {
        let feature = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": feature }));
    }

    /// Takes the network away, or gives it back.
    pub fn offline(&self, offline: bool) {
        let conditions = json!({ "offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        self.call("Network.emulateNetworkConditions", conditions);
    }

    /// Freezes the tab, as a phone does with one that is not seen, or wakes it.
    pub fn freeze(&self, frozen: bool) {
        let state = if frozen { "frozen" } else { "active" };
        // A page that is taken for the focused one is never frozen.
        self.call("Emulation.setFocusEmulationEnabled", json!({ "enabled": !frozen }));
        self.call("Page.setWebLifecycleState", json!({ "state": state }));
    }

    /// Runs a script in each page that is opened from now on, before its own.
    pub fn before_each(&self, script: &str) {
        self.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": script }));
    }

    /// Every address that this tab has asked for.
    pub fn requests(&self) -> Vec<String> {
        let said = self.browser.shared.said();
        let mine = said.events.iter().filter(|event| event["sessionId"] == self.session.as_str());
        let sent = mine.filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.map(|event| text(&event["params"]["request"]["url"])).collect()
    }

    /// What the browser complained about: errors of scripts, and what a policy has stopped.
    pub fn complaints(&self) -> Vec<String> {
        let said = self.browser.shared.said();
        let mine = said.events.iter().filter(|event| event["sessionId"] == self.session.as_str());
        let complaint = |event: &Value| match event["method"].as_str()? {
            "Runtime.exceptionThrown" => Some(event["params"]["exceptionDetails"].to_string()),
            "Log.entryAdded" if event["params"]["entry"]["level"] == "error" => {
                Some(text(&event["params"]["entry"]["text"]))
            }
            _ => None,
        };
        mine.filter_map(complaint).collect()
    }

    /// Writes a picture of what is in sight.
    pub fn picture(&self, file: &Path) {
        let taken = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let bytes = decode_base64(taken["data"].as_str().unwrap_or_default());
        std::fs::write(file, bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    pub fn close(&self) {
        self.browser.call(None, "Target.closeTarget", json!({ "targetId": self.target }));
    }
}

/// The bytes of a base-64 text.
fn decode_base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::with_capacity(text.len() * 3 / 4));
    for char in text.bytes() {
        let Some(value) = DIGITS.iter().position(|digit| *digit == char) else { break };
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    bytes
}
