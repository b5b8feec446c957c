//! A server's tool behind our interface.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ResourceContents};
use serde_json::Value;
use windlass_core::outcome::{CallEnding, Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};

use super::connection::MAX_MESSAGE_BYTES;
use super::name::{shown_name, wire_name};
use super::pin::ToolInfo;
use super::server::{CallError, Effects, Server};
use crate::output::neutralize;
use crate::tool::{Call, Category, Prepared, Tool, ToolContext};

/// The longest result that is kept at all; what the model sees is cut further.
const MAX_RESULT_BYTES: usize = 4 << 20;

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
        _context: &ToolContext,
        mut call: Call,
    ) -> BoxFuture<'_, Result<Prepared, Outcome>> {
        let class = self.class();
        let reason = format!("calls {}", self.shown_name());
        let assessment = Assessment::of(class, reason).at_least(Risk::Medium);
        let (effects, recovery) = match class {
            Class::Read => (Effects::None, Recovery::Rerun),
            _ => (Effects::Possible, Recovery::Unknown),
        };
        let arguments = match call.arguments.take() {
            Value::Object(arguments) => arguments,
            _ => JsonObject::new(),
        };
        let (server, tool) = (Arc::clone(&self.server), self.info.name.clone());
        let act = Box::new(move || -> BoxFuture<'static, Outcome> {
            Box::pin(async move {
                let stop = call.stop.clone();
                let calling = server.call(&tool, arguments, effects);
                let outcome = match stop.run_until_cancelled(calling).await {
                    Some(Ok(result)) => answered(result),
                    Some(Err(error)) => failed(&server, effects, error),
                    None => Outcome::ended(CallEnding::Cancelled, "Stopped with the task."),
                };
                server.notice_changes().await;
                outcome
            })
        });
        Box::pin(std::future::ready(Ok(Prepared::new(assessment, recovery, act))))
    }
}

fn failed(server: &Server, effects: Effects, error: CallError) -> Outcome {
    let name = server.name();
    match error {
        CallError::NotStarted(why) => {
            Outcome::failure(format!("MCP server `{name}` is not available: {why}."))
        }
        CallError::Died(why) if effects == Effects::None => {
            Outcome::failure(format!("MCP server `{name}`: {why}."))
        }
        CallError::Died(why) => {
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
                "MCP server `{name}` answered with more than {limit} MiB, which is too much to read. Ask for \
                 less of it."
            ))
        }
        CallError::Refused(why) => Outcome::failure(format!("MCP server `{name}`: {why}.")),
    }
}

fn answered(result: CallToolResult) -> Outcome {
    let mut texts: Vec<String> = result.content.iter().map(shown).collect();
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
    match result.is_error {
        Some(true) => Outcome::error(text),
        Some(false) | None => Outcome::ok(text),
    }
}

fn shown(content: &ContentBlock) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => binary("image", &image.mime_type, image.data.len()),
        ContentBlock::Audio(audio) => binary("audio", &audio.mime_type, audio.data.len()),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                format!("[{uri}: {} bytes that are not text]", blob.len() / 4 * 3)
            }
            _ => "[content of a kind that is not known]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[{}: {}]", link.name, link.uri),
        _ => "[content of a kind that is not known]".to_owned(),
    }
}

fn binary(what: &str, kind: &str, encoded: usize) -> String {
    format!("[{what}, {kind}, {} bytes; it is not shown]", encoded / 4 * 3)
}
