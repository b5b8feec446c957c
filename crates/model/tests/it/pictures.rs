//! Pictures on the wire: shown to a model that can see, named to one that cannot.

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_core::message::Message;
use windlass_core::picture::{Picture, PictureFormat};
use windlass_model::{Model, Models, PictureSource, Settings, Wire};
use windlass_testkit::{Answer, ModelServer};

use crate::support::{ask, message, prelude, result, settings};

fn picture(name: &str, format: PictureFormat) -> Picture {
    let hash = "0123456789abcdef".repeat(4).parse().unwrap();
    Picture { hash, format, width: 40, height: 30, bytes: 3, name: name.to_owned() }
}

fn model(wire: Wire, server: &ModelServer, sees: bool) -> Arc<dyn Model> {
    let vision = [("test/m".to_owned(), sees)].into();
    let settings = Settings { vision, ..settings(wire, &server.base()) };
    Models::new(settings).open(&"test/m".parse().unwrap()).unwrap()
}

/// The messages of a second request: a goal with a picture, and one that is gone after the result of a call.
async fn sent(wire: Wire, sees: bool) -> String {
    let server = ModelServer::start_empty();
    server.next(Answer::script("calls: [{bash: ls}]"));
    server.next(Answer::script("say: done"));
    let model = model(wire, &server, sees);
    let bytes = |picture: &Picture| (picture.name != "gone.jpg").then(|| b"PNG".to_vec());
    let mut transcript = model.transcript(&prelude()).with_pictures(PictureSource::new(bytes));
    let shot = picture("shot.png", PictureFormat::Png);
    transcript.push(&Message::with_pictures("like this", vec![shot.clone(), shot]));
    let reply = ask(&*model, &transcript).await.0.unwrap();
    transcript.push(&message(&reply));
    transcript.push(&result(&reply.calls[0], "a"));
    let gone = picture("gone.jpg", PictureFormat::Jpeg);
    transcript.push(&Message::with_pictures("and this", vec![gone]));
    ask(&*model, &transcript).await.0.unwrap();
    let requests = server.requests();
    requests[1].assert_extends(&requests[0]);
    let messages = windlass_testkit::messages_array(&requests[1].body).to_owned();
    messages.replace("},{", "},\n{").replace(":[{", ":[\n{")
}

#[tokio::test]
async fn chat_completions_carry_pictures_like_this() {
    insta::assert_snapshot!(sent(Wire::Chat, true).await, @r#"
    [{"role":"system","content":"You are \"careful\"."},
    {"role":"user","content":[
    {"image_url":{"url":"data:image/png;base64,UE5H"},"type":"image_url"},
    {"image_url":{"url":"data:image/png;base64,UE5H"},"type":"image_url"},
    {"text":"like this","type":"text"}]},
    {"role":"assistant","content":null,"tool_calls":[
    {"id":"call_0_0","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]},
    {"role":"tool","content":"a","tool_call_id":"call_0_0"},
    {"role":"user","content":[
    {"text":"[picture `gone.jpg`, JPEG 40×30 is not shown: it is no longer kept]","type":"text"},
    {"text":"and this","type":"text"}]}]
    "#);
}

#[tokio::test]
async fn messages_carry_pictures_like_this() {
    insta::assert_snapshot!(sent(Wire::Anthropic, true).await, @r#"
    [{"role":"user","content":[
    {"source":{"data":"UE5H","media_type":"image/png","type":"base64"},"type":"image"},
    {"source":{"data":"UE5H","media_type":"image/png","type":"base64"},"type":"image"},
    {"type":"text","text":"like this","cache_control":{"type":"ephemeral"}}]},
    {"role":"assistant","content":[
    {"type":"tool_use","id":"call_0_0","name":"bash","input":{"command":"ls"}}]},
    {"role":"user","content":[
    {"type":"tool_result","tool_use_id":"call_0_0","content":"a"},
    {"text":"[picture `gone.jpg`, JPEG 40×30 is not shown: it is no longer kept]","type":"text"},
    {"type":"text","text":"and this","cache_control":{"type":"ephemeral"}}]}]
    "#);
}

#[tokio::test]
async fn responses_carry_pictures_like_this() {
    let items: Value = serde_json::from_str(&sent(Wire::Responses, true).await).unwrap();
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,UE5H"});
    let text = |text: &str| json!({"type": "input_text", "text": text});
    assert_eq!((&items[0]["role"], &items[0]["type"]), (&json!("user"), &json!("message")));
    assert_eq!(items[0]["content"], json!([image, image, text("like this")]));
    let last = items.as_array().unwrap().last().unwrap();
    let gone = "[picture `gone.jpg`, JPEG 40×30 is not shown: it is no longer kept]";
    assert_eq!(last["content"], json!([text(gone), text("and this")]));
}

#[tokio::test]
async fn a_model_that_cannot_see_reads_what_pictures_are_called() {
    insta::assert_snapshot!(sent(Wire::Chat, false).await, @r#"
    [{"role":"system","content":"You are \"careful\"."},
    {"role":"user","content":"like this\n\n[picture `shot.png`, PNG 40×30 is not shown: this model cannot see pictures]\n[picture `shot.png`, PNG 40×30 is not shown: this model cannot see pictures]"},
    {"role":"assistant","content":null,"tool_calls":[
    {"id":"call_0_0","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]},
    {"role":"tool","content":"a","tool_call_id":"call_0_0"},
    {"role":"user","content":"and this\n\n[picture `gone.jpg`, JPEG 40×30 is not shown: this model cannot see pictures]"}]
    "#);
}

#[tokio::test]
async fn a_picture_counts_as_its_tokens_and_changes_the_hash() {
    let server = ModelServer::start_empty();
    let model = model(Wire::Chat, &server, true);
    let large = Picture { width: 1_500, height: 1_000, ..picture("a.png", PictureFormat::Png) };
    let other = Picture { hash: "f".repeat(64).parse().unwrap(), ..large.clone() };
    let with = |picture: &Picture| {
        let mut transcript = model.transcript(&prelude());
        transcript.push(&Message::with_pictures("see", vec![picture.clone()]));
        transcript
    };
    let transcript = with(&large);
    assert_eq!(transcript.text_bytes() - transcript.bytes(), 4 * 2_000);
    assert_eq!(transcript.hash(), with(&large).hash());
    assert_ne!(transcript.hash(), with(&other).hash());
}

/// Whether a model can see is known of current ones; the configuration has the last word.
#[tokio::test]
async fn an_unknown_model_cannot_see_unless_it_is_said_so() {
    let server = ModelServer::start_empty();
    for (name, said, sees) in [
        ("test/gpt-4o", None, true),
        ("test/gpt-4o", Some(false), false),
        ("test/unheard-of", None, false),
        ("test/unheard-of", Some(true), true),
    ] {
        let vision = said.map(|sees| (name.to_owned(), sees)).into_iter().collect();
        let settings = Settings { vision, ..settings(Wire::Chat, &server.base()) };
        let model = Models::new(settings).open(&name.parse().unwrap()).unwrap();
        let mut transcript = model.transcript(&prelude());
        let shot = picture("shot.png", PictureFormat::Png);
        transcript.push(&Message::with_pictures("see", vec![shot]));
        assert_eq!(transcript.pictures().count(), usize::from(sees), "{name} {said:?}");
    }
}
