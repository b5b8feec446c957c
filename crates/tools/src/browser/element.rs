//! One element of a page, found again by its ref: what a hand and a keyboard do with it.

use serde_json::{Value, json};

use super::Error;
use super::page::{Forms, Page, check, without_comment};

const REACH: &str = include_str!("reach.js");
const FILL: &str = include_str!("fill.js");
const CHOOSE: &str = include_str!("choose.js");
const SUBMIT: &str = include_str!("submit.js");

/// An element of a page that is shown now.
pub(super) struct LiveElement<'p> {
    page: &'p Page<'p>,
    object: String,
    world: i64,
}

impl<'p> LiveElement<'p> {
    pub fn new(page: &'p Page<'p>, object: &str, world: i64) -> Self {
        Self { page, object: object.to_owned(), world }
    }

    /// Has a function work on it.
    async fn on(&self, function: &str, arguments: Value) -> Result<Value, Error> {
        let arguments: Vec<Value> = arguments
            .as_array()
            .into_iter()
            .flatten()
            .map(|argument| json!({ "value": argument }))
            .collect();
        let wanted = json!({
            "objectId": self.object, "functionDeclaration": without_comment(function),
            "arguments": arguments, "returnByValue": true, "userGesture": true,
        });
        let mut answer = self.page.call("Runtime.callFunctionOn", wanted).await?;
        check(&answer)?;
        Ok(answer["result"]["value"].take())
    }

    /// Clicks it. One that turns out to submit a form is left alone unless that is allowed.
    pub async fn click(&self, forms: Forms) -> Result<(), Error> {
        let may_submit = forms == Forms::Send;
        let reached = self.on(REACH, json!([!may_submit])).await?;
        if reached["submits"] == true && !may_submit {
            return Err(Error::WouldSubmit);
        }
        if reached["disabled"] == true {
            return Err(Error::Refused("it is disabled".to_owned()));
        }
        let middle = match reached["isHit"] == true {
            true => self.middle().await,
            false => None,
        };
        match middle {
            Some((x, y)) => self.press(x, y).await?,
            // Something covers it; a script reaches it all the same.
            None => drop(self.on("function () { this.click(); }", json!([])).await?),
        }
        self.page.react().await;
        self.allow_forms().await
    }

    /// Takes back that forms are stopped, and says if one was.
    async fn allow_forms(&self) -> Result<(), Error> {
        let expression = "(() => {
            if (globalThis.stopForms) window.removeEventListener('submit', globalThis.stopForms, { capture: true });
            const stopped = globalThis.stoppedForm ?? null;
            globalThis.stopForms = globalThis.stoppedForm = undefined;
            return stopped; })()";
        // Where the page was left, its world is gone with it.
        let stopped: Result<Option<String>, Error> =
            self.page.value(self.world, expression.to_owned()).await;
        if stopped.ok().flatten().is_some() { Err(Error::WouldSubmit) } else { Ok(()) }
    }

    async fn middle(&self) -> Option<(f64, f64)> {
        let wanted = json!({ "objectId": self.object });
        let answer = self.page.call("DOM.getContentQuads", wanted).await.ok()?;
        let corners: Vec<f64> =
            answer["quads"][0].as_array()?.iter().filter_map(Value::as_f64).collect();
        let [x1, y1, _, _, x2, y2, ..] = corners[..] else { return None };
        Some(((x1 + x2) / 2.0, (y1 + y2) / 2.0))
    }

    async fn press(&self, x: f64, y: f64) -> Result<(), Error> {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let event = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 });
            self.page.call("Input.dispatchMouseEvent", event).await?;
        }
        Ok(())
    }

    /// Writes into it, a field, in place of what is there.
    pub async fn write(&self, text: &str) -> Result<(), Error> {
        let ready = self.on(FILL, json!([text])).await?;
        match ready.as_str() {
            Some("ready") => {
                match text.is_empty() {
                    true => self.key("Backspace", 8, None).await?,
                    false => {
                        drop(self.page.call("Input.insertText", json!({ "text": text })).await?)
                    }
                }
                self.page.react().await;
                Ok(())
            }
            Some("done") => Ok(()),
            other => Err(Error::Refused(other.unwrap_or_default().to_owned())),
        }
    }

    /// Chooses an option of it, a list; returns what is chosen then.
    pub async fn choose(&self, text: &str) -> Result<String, Error> {
        let answer = self.on(CHOOSE, json!([text])).await?;
        match (answer["chosen"].as_str(), answer["problem"].as_str()) {
            (Some(chosen), _) => {
                self.page.react().await;
                Ok(chosen.to_owned())
            }
            (None, problem) => Err(Error::Refused(problem.unwrap_or_default().to_owned())),
        }
    }

    /// Submits the form that it belongs to; without a form, presses Enter in it.
    pub async fn submit(&self) -> Result<(), Error> {
        let answer = self.on(SUBMIT, json!([])).await?;
        match answer.as_str() {
            Some("done") => {}
            Some("press enter") => self.key("Enter", 13, Some("\r")).await?,
            other => return Err(Error::Refused(other.unwrap_or_default().to_owned())),
        }
        self.page.react().await;
        Ok(())
    }

    async fn key(&self, key: &str, code: u32, text: Option<&str>) -> Result<(), Error> {
        for kind in ["keyDown", "keyUp"] {
            let mut event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            if let Some(text) = text {
                event["text"] = text.into();
            }
            self.page.call("Input.dispatchKeyEvent", event).await?;
        }
        Ok(())
    }

    /// Brings it into sight.
    pub async fn scroll_to(&self) -> Result<(), Error> {
        self.on(REACH, json!([false])).await?;
        self.page.react().await;
        Ok(())
    }

    /// Where it is on the whole page, in sight by then: left, top, width and height.
    pub async fn place(&self) -> Result<[f64; 4], Error> {
        self.on(REACH, json!([false])).await?;
        let box_of = "function () { const box = this.getBoundingClientRect();
            return [box.left + scrollX, box.top + scrollY, box.width, box.height]; }";
        let place = self.on(box_of, json!([])).await?;
        serde_json::from_value(place).map_err(|error| Error::Refused(error.to_string()))
    }
}
