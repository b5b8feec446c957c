//! Providers as data, efforts, and what `windlass models` says of them.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};
use windlass_model::Wire;
use windlass_testkit::ModelServer;

use crate::program::{Program, Ran};
use crate::wires::{configure, speaking};

/// An effort is a property of a model mode; a flag goes before it.
#[test]
fn an_effort_comes_with_the_mode_and_from_the_flag() {
    let program = Program::playing("match: [{say: done}]");
    let base = program.server.base();
    configure(
        &program,
        &format!(
            "[models]\nfast = \"test/f\"\n[models.deep]\nmodel = \"test/m\"\neffort = \"high\"\n\
             [models.providers.test]\nbase = \"{base}\"\n"
        ),
    );
    let effort = |args: &[&str]| {
        program.windlass(&[&["run", "go", "-q"], args].concat()).expect(0);
        program.server.requests().pop().unwrap().json()["reasoning_effort"].clone()
    };
    assert_eq!(effort(&["--model-mode", "deep"]), "high");
    assert_eq!(effort(&["--model-mode", "deep", "--effort", "low"]), "low");
    assert_eq!(effort(&["--model-mode", "fast"]), Value::Null);
    assert_eq!(effort(&["--model", "test/other"]), Value::Null);
}

#[test]
fn an_unknown_or_unsupported_effort_is_refused_with_the_valid_ones() {
    let program = Program::playing("replies: [{say: done}]");
    let refused = program.windlass(&["run", "go", "--effort", "ultra"]).expect(2).stderr;
    assert!(refused.contains("none, minimal, low, medium, high, max"), "{refused}");
    let mut command = program.command(&["run", "go", "--model", "mistral/m", "--effort", "low"]);
    let ran: Ran = command.env("MISTRAL_API_KEY", "k").output().unwrap().into();
    let refused = ran.expect(2).stderr;
    assert!(refused.contains("it takes none, high"), "{refused}");
    configure(&program, "[models.deep]\nmodel = \"mistral/m\"\neffort = \"low\"\n");
    let refused = program.windlass(&["config"]).expect(2).stderr;
    assert!(refused.contains("`models.deep`"), "{refused}");
    assert!(refused.contains("it takes none, high"), "{refused}");
    assert_eq!(program.server.request_count(), 0);
}

#[test]
fn a_provider_is_described_in_a_table() {
    let program = Program::playing("match: [{say: done}]");
    let base = program.server.base();
    configure(
        &program,
        &format!(
            "[models.providers.acme]\nbase = \"{base}/v2\"\nkey_env = \"ACME_KEY\"\n\
             headers = {{ \"x-team\" = \"blue\" }}\nquery = {{ region = \"eu west\" }}\n\
             [models.providers.azure]\nbase = \"{base}\"\n"
        ),
    );
    let run = |model: &str| {
        let mut command = program.command(&["run", "go", "-q", "--model", model]);
        command.env("ACME_KEY", "acme-secret-0123").env("AZURE_OPENAI_API_KEY", "azure-secret-01");
        Ran::from(command.output().unwrap()).expect(0);
        program.server.requests().pop().unwrap()
    };
    let acme = run("acme/big/model");
    assert_eq!(acme.path, "/v2/chat/completions?region=eu+west");
    assert_eq!(acme.header("authorization"), Some("Bearer acme-secret-0123"));
    assert_eq!((acme.header("x-team"), acme.model.as_str()), (Some("blue"), "big/model"));
    let azure = run("azure/my-deployment");
    assert_eq!(
        azure.path,
        "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21"
    );
    assert_eq!(azure.header("api-key"), Some("azure-secret-01"));
    assert_eq!(azure.header("authorization"), None);
}

#[test]
fn what_is_wrong_with_a_provider_is_said_with_its_place() {
    let program = Program::playing("replies: [{say: done}]");
    for (text, words) in [
        (
            "[models.providers.acme]\nwire = \"soap\"\n",
            "allowed: `chat`, `responses` or `anthropic`",
        ),
        (
            "[models.providers.acme]\nwire = \"chat\"\n",
            "`models.providers.acme.base`: it is missing",
        ),
        ("[models.providers.acme]\nbsae = \"http://x\"\n", "did you mean `base`?"),
        ("[models.providers]\nacme = 7\n", "a provider is a table"),
        ("[models.providers.\"a b\"]\nbase = \"http://x\"\n", "a provider's name has letters"),
        ("[models]\nsmart = \"nobody/x\"\n", "unknown provider `nobody`"),
        ("[models.deep]\neffort = \"ultra\"\n", "`ultra` is not a level of effort"),
        ("[models.deep]\nmodle = \"x\"\n", "it has `modle`, which is not known"),
    ] {
        configure(&program, text);
        let mut command = program.command(&["config"]);
        let refused = Ran::from(command.env_remove("LITELLM_MODEL").output().unwrap());
        let refused = refused.expect(2).stderr;
        assert!(refused.contains(words) && refused.contains("config.toml:"), "{text}: {refused}");
    }
}

#[test]
fn models_lists_providers_keys_and_what_a_local_server_has() {
    let program = Program::playing("match: [{say: pong}]");
    let base = program.server.base();
    configure(&program, &format!("[models.providers.near]\nbase = \"{base}/v1\"\n"));
    let mut command = program.command(&["models"]);
    command.env("GROQ_API_KEY", "k").env("OLLAMA_BASE_URL", "http://127.0.0.1:9/v1");
    let page = Ran::from(command.output().unwrap()).expect(0).stdout;
    let line = |name: &str| {
        let found = page.lines().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("{name}: {page}")).to_owned()
    };
    assert!(line("groq").contains("found (GROQ_API_KEY)"), "{page}");
    assert!(line("openai ").contains("missing (OPENAI_API_KEY)"), "{page}");
    assert!(line("openai ").contains("responses"), "{page}");
    assert!(line("ollama").contains("not needed"), "{page}");
    assert!(line("ollama").contains("not running"), "{page}");
    assert!(line("near").contains("not needed") && line("near").contains(": scripted"), "{page}");
    assert!(line("azure").contains("not set (AZURE_OPENAI_ENDPOINT)"), "{page}");
    assert!(line("smart").contains("128.0k  $2.5/$10"), "{page}");

    let rows = program.windlass(&["models", "--json"]).expect(0).json_lines();
    let near = rows.iter().find(|row| row["provider"] == "near").unwrap();
    assert_eq!((&near["models"], &near["usable"]), (&json!(["scripted"]), &json!(true)));
    assert_eq!(rows.iter().filter(|row| row["mode"].is_string()).count(), 3);
}

#[test]
fn models_test_prints_what_works() {
    let script = "
match:
  - {when: twice, calls: [{echo: {text: one}}, {echo: {text: two}}]}
  - {when: once, think: A tool then., echo: {text: one}}
  - {when: one word, say: Red.}
  - {when: one, say: done}
  - {say: pong}
";
    for &wire in Wire::ALL {
        let program = speaking(ModelServer::start(script), wire);
        let page = program.windlass(&["models", "--test", "test/m"]).expect(0).stdout;
        for words in [
            "works  test/m: it answered `",
            "yes  stream          the answer came in",
            "yes  tool call       it called a tool and read the result",
            "yes  parallel calls  2 calls in one reply",
            "yes  reasoning       it thought `A tool then.`",
            "yes  picture         it was shown red, and said `Red.`",
        ] {
            assert!(page.contains(words), "{wire}: {words}: {page}");
        }
    }
    let program = Program::playing("match: [{say: pong}]");
    let page = program.windlass(&["models", "--test"]).expect(0).stdout;
    assert!(page.contains("no   tool call       it called nothing, and said `pong`"), "{page}");
    assert!(page.contains("no   reasoning       none was seen"), "{page}");
    assert!(page.contains("no   picture         it was shown red, and said `pong`"), "{page}");
}

/// A server that has no list of models runs all the same.
#[test]
fn a_local_server_without_a_list_is_not_called_stopped() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
        let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let program = Program::playing("match: [{say: pong}]");
    let mut command = program.command(&["models"]);
    command.env("LMSTUDIO_BASE_URL", base);
    let page = Ran::from(command.output().unwrap()).expect(0).stdout;
    serving.join().unwrap();
    let line = page.lines().find(|line| line.starts_with("lmstudio")).unwrap();
    assert!(line.contains(": it answers with status 404"), "{page}");
}
