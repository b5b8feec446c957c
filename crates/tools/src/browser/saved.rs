//! What a browser is started again with: a question to a person ends the sandbox and the browser in it, and so does a while
//! without a call. The tabs, what was typed into them and the cookies are kept in the data directory until the task ends.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_core::id::TaskId;

/// Elements whose facts are kept; more than a page shows.
const MAX_ELEMENTS: usize = 3_000;

/// The browsing of one agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct BrowsingState {
    pub tabs: Vec<SavedTab>,
    /// Which of them is looked at.
    pub active: usize,
    /// The elements of that one, as the agent has last seen them.
    pub elements: BTreeMap<String, Element>,
    pub cookies: Vec<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SavedTab {
    pub url: String,
    /// What was typed or chosen on this page, by ref.
    #[serde(default)]
    pub entered: Vec<FieldEntry>,
}

/// Something that was typed into a field, or chosen from a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FieldEntry {
    #[serde(rename = "ref")]
    pub reference: String,
    pub text: String,
    pub is_choice: bool,
}

/// What an element is, and what a click on it would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Element {
    #[serde(rename = "ref")]
    pub reference: String,
    pub role: String,
    pub name: String,
    /// Whether a click submits its form.
    pub submits: bool,
    pub form: Option<Form>,
}

/// A form as it would be sent. What is hidden in it, such as a token, differs each time and is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Form {
    pub method: String,
    pub url: String,
    pub fields: Vec<(String, String)>,
}

impl Form {
    /// What a person reads who is asked whether it may be sent.
    pub fn text(&self) -> String {
        let fields = self.fields.iter().map(|(name, value)| format!("+ {name}: {value}\n"));
        format!("{} {}\n{}", self.method, self.url, fields.collect::<String>())
    }
}

impl BrowsingState {
    /// What was saved for a task; nothing where that cannot be read.
    pub fn read(directory: &Path, task: TaskId) -> Self {
        let text = fs::read(file(directory, task)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Saves it. Nobody else can read it: cookies are as good as passwords.
    pub fn write(&self, directory: &Path, task: TaskId) -> std::io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let path = file(directory, task);
        let new = path.with_extension("new");
        let mut options = fs::OpenOptions::new();
        let mut out = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        out.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(new, path)
    }

    pub fn remove(directory: &Path, task: TaskId) {
        let _ = fs::remove_file(file(directory, task));
    }

    /// Takes note of what the page shows now.
    pub fn set_elements(&mut self, elements: impl IntoIterator<Item = Element>) {
        let named = elements.into_iter().map(|element| (element.reference.clone(), element));
        self.elements = named.take(MAX_ELEMENTS).collect();
    }
}

fn file(directory: &Path, task: TaskId) -> std::path::PathBuf {
    directory.join(format!("{task}.json"))
}
