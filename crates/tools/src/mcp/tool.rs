//! A server's tool behind our interface.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents};
use serde_json::Value;
use windlass_core::outcome::{CallEnding, Outcome, Recovery};
use windlass_core::picture::Picture;
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_store::Pictures;

use super::bound::{MAX_MESSAGE_BYTES, MAX_VALUES};
use super::name::{shown_name, wire_name};
use super::pin::ToolInfo;
use super::server::{CallError, Effects, Server};
use crate::builtin::blocking;
use crate::output::neutralize;
use crate::pictures::keep_picture;
use crate::tool::{Call, Category, Prepared, Tool, ToolContext};
use crate::workspace::{FileKind, RuleGuard, Workspace};

/// The longest result that is kept at all; what the model sees is cut further.
const MAX_RESULT_BYTES: usize = 4 << 20;
/// How deep arguments are looked into; parsers accept no more.
const MAX_DEPTH: usize = 128;
/// Pictures of one result that are shown.
const MAX_PICTURES: usize = 10;

/// One tool of one server.
pub struct McpTool {
    server: Arc<Server>,
    info: ToolInfo,
    wire: String,
    description: String,
}

impl McpTool {
    /// A tool as its server describes it.
    pub fn new(server: Arc<Server>, info: ToolInfo) -> Self {
        let wire = wire_name(server.name(), &info.name);
        let shown = shown_name(server.name(), &info.name);
        let description = format!("[{shown}] {}", info.description.trim()).trim_end().to_owned();
        Self { server, info, wire, description }
    }

    /// The name people read and write.
    pub fn shown_name(&self) -> String {
        shown_name(self.server.name(), &self.info.name)
    }

    /// What a call would do. A server's own word counts only where a person trusts it; anything else
    /// could do anything that a program of the project could.
    fn class(&self) -> Class {
        if !self.server.definition().trusted {
            return Class::Build;
        }
        let ToolInfo { read_only, destructive, open_world, .. } = &self.info;
        match (read_only, destructive, open_world) {
            (Some(true), _, _) => Class::Read,
            (_, Some(true), _) => Class::Destructive,
            (_, Some(false), Some(false)) => Class::LocalCommand,
            _ => Class::Build,
        }
    }
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.wire
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn parameters(&self) -> Value {
        self.info.parameters.clone()
    }

    fn category(&self) -> Category {
        Category::Other
    }

    fn min_class(&self) -> (Class, Risk) {
        let class = self.class();
        (class, class.base_risk().max(Risk::Medium))
    }

    fn prepare(
        &self,
        context: &ToolContext,
        mut call: Call,
    ) -> BoxFuture<'_, Result<Prepared, Outcome>> {
        let class = self.class();
        let reason = format!("calls {}", self.shown_name());
        let rule = (class != Class::Read)
            .then(|| named_rule(&call.arguments, &context.workspace, MAX_DEPTH))
            .flatten();
        let assessment = match &rule {
            Some(rule) => FileKind::Rule.change(
                &format!("{reason} with"),
                rule,
                Assessment::of(class, reason.clone()),
            ),
            None => Assessment::of(class, reason).at_least(Risk::Medium),
        };
        let (effects, recovery) = match class {
            Class::Read => (Effects::None, Recovery::Rerun),
            Class::Note
            | Class::Ledger
            | Class::Edit
            | Class::Delegate
            | Class::LocalCommand
            | Class::Test
            | Class::Build
            | Class::Publish
            | Class::Production
            | Class::Destructive
            | Class::Opaque
            | Class::Catastrophic => (Effects::Possible, Recovery::Unknown),
        };
        let arguments = match call.arguments.take() {
            Value::Object(arguments) => arguments,
            _ => JsonObject::new(),
        };
        let (server, tool) = (Arc::clone(&self.server), self.info.name.clone());
        let (pictures, from) = (context.pictures.clone(), self.shown_name());
        let workspace = Arc::clone(&context.workspace);
        let record = context.shell.rule_record(call.id);
        let act = Box::new(move || -> BoxFuture<'static, Outcome> {
            Box::pin(async move {
                let stop = call.stop.clone();
                let guard = rule.is_none().then(|| RuleGuard::new(Arc::clone(&workspace), record));
                let calling = server.call(&tool, arguments, effects);
                let mut outcome = match stop.run_until_cancelled(calling).await {
                    // Pictures are decoded, which takes a while.
                    Some(Ok(result)) => {
                        blocking(move || answer_outcome(result, &pictures, &from)).await
                    }
                    Some(Err(error)) => failed(&server, effects, error),
                    None => Outcome::ended(CallEnding::Cancelled, "Stopped with the task."),
                };
                match guard {
                    Some(guard) => {
                        guard.put_back(call.id).inspect(|note| outcome.add_note(note));
                    }
                    None => workspace.rule_files().accept_all(),
                }
                server.notice_changes().await;
                outcome
            })
        });
        Box::pin(std::future::ready(Ok(Prepared::new(assessment, recovery, act))))
    }
}

/// The first file with rules for agents that a text among the arguments names.
fn named_rule(arguments: &Value, workspace: &Workspace, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match arguments {
        Value::String(text) => {
            let path = text.strip_prefix("file://").unwrap_or(text);
            let may_be_path = !path.is_empty() && !path.contains('\n');
            let is_rule = may_be_path && workspace.kind(path) == FileKind::Rule;
            is_rule.then(|| path.to_owned())
        }
        Value::Array(all) => all.iter().find_map(|one| named_rule(one, workspace, depth)),
        Value::Object(all) => all.values().find_map(|one| named_rule(one, workspace, depth)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn failed(server: &Server, effects: Effects, error: CallError) -> Outcome {
    let name = server.name();
    match error {
        CallError::NotStarted(why) => {
            let why = neutralize(&why.to_string());
            Outcome::failure(format!("MCP server `{name}` is not available: {why}."))
        }
        CallError::Died(why) if effects == Effects::None => {
            let why = neutralize(&why.to_string());
            Outcome::failure(format!("MCP server `{name}`: {why}."))
        }
        CallError::Died(why) => {
            let why = neutralize(&why.to_string());
            let text = format!(
                "MCP server `{name}`: {why}. Whether the call took effect is not known: look before you \
                 call it again."
            );
            let display = format!(
                "MCP server `{name}`: {why}. It may have taken effect and was not repeated."
            );
            Outcome { display: Some(display), ..Outcome::ended(CallEnding::Unknown, text) }
        }
        CallError::TooSlow => {
            let seconds = server.definition().call.as_secs();
            Outcome::failure(format!("MCP server `{name}` did not answer within {seconds} s."))
        }
        CallError::TooLarge => {
            let limit = MAX_MESSAGE_BYTES >> 20;
            Outcome::failure(format!(
                "MCP server `{name}` answered with more than {limit} MiB or {MAX_VALUES} values, which is too \
                 much to read. Ask for less of it."
            ))
        }
        // What a server says is its own text, also where it refuses.
        CallError::Refused(why) => {
            let why = neutralize(&why.to_string());
            Outcome::failure(format!("MCP server `{name}`: {why}."))
        }
    }
}

fn answer_outcome(result: CallToolResult, pictures: &Pictures, from: &str) -> Outcome {
    let mut shown = ResultPictures { store: pictures, from, pictures: Vec::new() };
    let mut texts: Vec<String> = result.content.iter().map(|one| shown.text_of(one)).collect();
    if let (true, Some(structured)) = (texts.is_empty(), &result.structured_content) {
        texts.push(serde_json::to_string_pretty(structured).unwrap_or_default());
    }
    let whole = texts.join("\n");
    let text = windlass_core::text::prefix(&whole, MAX_RESULT_BYTES);
    let mut text = neutralize(text);
    if whole.len() > MAX_RESULT_BYTES {
        text.push_str(&format!(
            "\n[only the first {MAX_RESULT_BYTES} of its {} bytes]",
            whole.len()
        ));
    }
    if text.is_empty() {
        text.push_str("(no output)");
    }
    let outcome = match result.is_error {
        Some(true) => Outcome::error(text),
        Some(false) | None => Outcome::ok(text),
    };
    shown.into_outcome(outcome)
}

/// The pictures of a result, as they are found.
struct ResultPictures<'a> {
    store: &'a Pictures,
    from: &'a str,
    pictures: Vec<Picture>,
}

impl ResultPictures<'_> {
    /// What the model reads of a part of a result.
    fn text_of(&mut self, content: &ContentBlock) -> String {
        match content {
            ContentBlock::Text(text) => text.text.clone(),
            ContentBlock::Image(image) => self.picture(&image.mime_type, &image.data),
            ContentBlock::Audio(audio) => {
                let bytes = audio.data.len() / 4 * 3;
                format!("[audio, {}, {bytes} bytes; it is not shown]", audio.mime_type)
            }
            ContentBlock::Resource(embedded) => match &embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    format!("[{uri}]\n{text}")
                }
                ResourceContents::BlobResourceContents { uri, blob, mime_type, .. } => {
                    match mime_type.as_deref().filter(|kind| kind.starts_with("image/")) {
                        Some(kind) => format!("[{uri}]\n{}", self.picture(kind, blob)),
                        None => format!("[{uri}: {} bytes that are not text]", blob.len() / 4 * 3),
                    }
                }
                _ => "[content of a kind that is not known]".to_owned(),
            },
            ContentBlock::ResourceLink(link) => format!("[{}: {}]", link.name, link.uri),
            _ => "[content of a kind that is not known]".to_owned(),
        }
    }

    fn picture(&mut self, kind: &str, data: &str) -> String {
        if self.pictures.len() == MAX_PICTURES {
            return format!("[picture, {kind}; it is not shown: {MAX_PICTURES} are the most]");
        }
        let name = format!("{} {}", self.from, self.pictures.len() + 1);
        let bytes = STANDARD.decode(data.trim()).map_err(|_| "is not valid base64".to_owned());
        match bytes.and_then(|bytes| keep_picture(self.store, &bytes, &name)) {
            Ok(picture) => {
                let text = format!("[{picture}]");
                self.pictures.push(picture);
                text
            }
            Err(why) => format!("[{kind}: it {why}]"),
        }
    }

    fn into_outcome(self, outcome: Outcome) -> Outcome {
        if self.pictures.is_empty() {
            return outcome;
        }
        // Two pictures of one size have the same words.
        let hashes = self.pictures.iter().map(|picture| picture.hash.as_str());
        let fingerprint =
            Some(format!("{} {}", outcome.text, hashes.collect::<Vec<_>>().join(" ")));
        Outcome { pictures: self.pictures, fingerprint, ..outcome }
    }
}
