//! What these tests share: models of a test server, and conversations written short.

use std::{sync::Arc, time::Duration};

use windlass_core::{
    id::CallId,
    message::{ArgumentSchema, Message, Prelude, ToolRequest, ToolSpec},
};
use windlass_model::{
    Error, Model, Models, Options, Provider, Reply, Retry, Settings, StreamEvent, Transcript, Wire,
};
use windlass_testkit::ModelServer;

/// Settings for a base, with waits too short to notice.
pub fn settings(wire: Wire, base: &str) -> Settings {
    let provider = Provider::new(wire, base, Some("sk-test-0123456789".into()));
    Settings {
        providers: [("test".to_owned(), provider)].into(),
        retry: Retry { base: Duration::from_millis(1), ..Retry::default() },
        ..Settings::default()
    }
}

/// The model `test/m` of a base.
pub fn model_at(wire: Wire, base: &str) -> Arc<dyn Model> {
    Models::new(settings(wire, base)).open(&"test/m".parse().unwrap()).unwrap()
}

/// The model `test/m` of a server.
pub fn model(wire: Wire, server: &ModelServer) -> Arc<dyn Model> {
    model_at(wire, &server.base())
}

/// A system prompt and two tools.
pub fn prelude() -> Prelude {
    let tool = |name: &str, argument: &str| ToolSpec {
        name: name.to_owned(),
        description: format!("The tool {name}."),
        parameters: ArgumentSchema::from(&serde_json::json!({
            "type": "object",
            "properties": {argument: {"type": "string"}},
            "required": [argument],
        })),
    };
    Prelude {
        system: "You are \"careful\".".to_owned(),
        tools: vec![tool("bash", "command"), tool("read", "path")],
    }
}

/// A conversation that begins with `goal`.
pub fn begun(model: &dyn Model, goal: &str) -> Transcript {
    let mut transcript = model.transcript(&prelude());
    transcript.push(&Message::user(goal));
    transcript
}

/// A reply as the message it becomes.
pub fn message(reply: &Reply) -> Message {
    let call = |call: &windlass_model::Call| ToolRequest {
        id: CallId::derived("test", &call.provider_id),
        provider_id: call.provider_id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    };
    Message::Assistant {
        text: reply.text.clone(),
        calls: reply.calls.iter().map(call).collect(),
        reasoning: reply.reasoning.clone(),
    }
}

/// What a tool said to a call.
pub fn result(call: &windlass_model::Call, text: &str) -> Message {
    Message::Tool {
        provider_id: call.provider_id.clone(),
        name: call.name.clone(),
        text: text.to_owned(),
        is_error: false,
    }
}

/// Asks once and keeps what happened on the way.
pub async fn ask(
    model: &dyn Model,
    transcript: &Transcript,
) -> (Result<Reply, Error>, Vec<StreamEvent>) {
    let mut seen = Vec::new();
    let options = Options::default();
    let reply = model.reply(transcript, &options, &mut |live| seen.push(live)).await;
    (reply, seen)
}

/// Asks with a fresh conversation.
pub async fn hello(model: &dyn Model) -> Result<Reply, Error> {
    ask(model, &begun(model, "hello")).await.0
}
