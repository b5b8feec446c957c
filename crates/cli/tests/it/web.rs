//! The web as a task is offered it.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::program::Program;

fn tools(program: &Program) -> Vec<String> {
    let body = program.server.requests()[0].json();
    let tools = body["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn user_config(program: &Program, text: &str) {
    let path = program.data.path().join(".config/windlass/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// O-21, ES-191: no provider, no tool.
#[test]
fn searching_is_offered_only_with_a_provider_and_nothing_without_a_network() {
    let program = Program::playing("replies: [{say: hello}]");
    program.windlass(&["run", "look", "--quiet"]).expect(0);
    let names = tools(&program);
    assert!(names.contains(&"web_fetch".to_owned()) && !names.contains(&"web_search".to_owned()));

    let program = Program::playing("replies: [{say: hello}]");
    user_config(
        &program,
        "[web]\nsearch_provider = 'searxng'\nsearch_url = 'http://127.0.0.1:9'\n",
    );
    program.windlass(&["run", "look", "--quiet"]).expect(0);
    assert!(tools(&program).contains(&"web_search".to_owned()));

    let program = Program::playing("replies: [{say: hello}]");
    user_config(&program, "[sandbox]\nnetwork = 'none'\n");
    program.windlass(&["run", "look", "--quiet"]).expect(0);
    assert!(!tools(&program).iter().any(|name| name.starts_with("web_")));
}

/// ES-305: only the user's configuration opens a private address; what was read is evidence.
#[test]
fn a_local_page_is_fetched_where_its_address_is_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0; 4096]).unwrap();
        let page = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhello";
        socket.write_all(page.as_bytes()).unwrap();
    });
    let script = format!("replies: [{{web_fetch: {{url: '{url}'}}}}, {{say: done}}]");
    let program = Program::playing(&script);
    program.windlass(&["run", "look", "--quiet"]).expect(0);
    assert!(program.last_message_sent().contains("which is loopback"));

    let program = Program::playing(&script);
    user_config(&program, "[web]\nallow_addresses = ['127.0.0.1']\n");
    let run = ["run", "look", "--json", "--permission-profile", "restricted"];
    let ran = program.windlass(&run).expect(0);
    assert!(program.last_message_sent().ends_with("\n\nhello"));
    let page = &ran.result()["evidence_refs"][1];
    assert_eq!((&page["type"], &page["uri"]), (&"url".into(), &url.into()));
    serving.join().unwrap();
}

#[test]
fn a_refused_connection_is_named_in_the_result_of_its_command() {
    let script = "replies: [{bash: 'python3 ask.py'}, {say: done}]";
    let program = Program::playing(script);
    let ask = "import urllib.request\ntry: urllib.request.urlopen('http://10.0.0.1/')\n\
               except Exception as error: print(error.read().decode())\n";
    std::fs::write(program.workspace().join("ask.py"), ask).unwrap();
    program.windlass(&["run", "look", "--quiet"]).expect(0);
    let text = "windlass refused a connection to 10.0.0.1:80: 10.0.0.1 is a private network; allow it with \
                `sandbox.allow_addresses`";
    let sent = program.last_message_sent();
    assert_eq!(sent.matches(text).count(), 2, "the answer and the note: {sent}");
    assert!(sent.ends_with(&format!("[{text}]")), "{sent}");
    let typed = program.windlass(&["exec", "--workspace", ".", "python3 ask.py"]).expect(0);
    assert!(typed.stderr.contains(&format!("{text}\nexit 0")), "{typed:?}");
}
