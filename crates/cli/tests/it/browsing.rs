//! A task with a browser: the real binary, real Chromium in the local sandbox, a scripted model.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use windlass_testkit::{Answer, ModelServer};

use crate::program::{Program, Ran, needed};

const PAGE: &str = "<title>Paint shop</title><h1>Paint shop</h1>
    <form method=post action=/order><label>Name <input name=name></label>
    <button>Cancel everything</button><button name=go value=1>Order now</button></form>";

/// Takes 900 MB, in pieces, and says how far it is.
const HUNGRY: &str = "<title>Hungry</title><p id=said>begins</p><script>
    const held = [];
    function eat() {
        const piece = new Uint8Array(50 << 20);
        for (let at = 0; at < piece.length; at += 4096) piece[at] = 1;
        held.push(piece);
        document.getElementById('said').textContent = held.length < 18 ? 'eats' : 'is full';
        if (held.length < 18) setTimeout(eat, 1);
    }
    setTimeout(eat, 500);</script>";

/// A shop, at another address of loopback than the one that pages must not reach.
struct Shop {
    base: String,
    orders: Arc<Mutex<Vec<String>>>,
}

fn shop() -> Shop {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let orders: Arc<Mutex<Vec<String>>> = Arc::default();
    let taken = Arc::clone(&orders);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (Ok(mut socket), taken) = (socket, Arc::clone(&taken)) else { return };
            std::thread::spawn(move || {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                // A browser opens connections ahead of time and sends nothing over some.
                while let Ok(count @ 1..) = socket.read(&mut buffer) {
                    request.extend_from_slice(&buffer[..count]);
                    if is_whole(&request) {
                        break;
                    }
                }
                let text = String::from_utf8_lossy(&request).into_owned();
                let body = match text.split_once("\r\n\r\n") {
                    Some((head, sent)) if head.starts_with("POST /order") => {
                        taken.lock().unwrap().push(sent.to_owned());
                        format!("<title>Ordered</title><p>Ordered by {sent}</p>")
                    }
                    Some((head, _)) if head.starts_with("GET /hungry") => HUNGRY.to_owned(),
                    _ => PAGE.to_owned(),
                };
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close";
                let _ = write!(socket, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            });
        }
    });
    Shop { base, orders }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0_usize)
}

/// The last result that the model was sent.
fn last_result(request: &Value) -> String {
    let last = request["messages"].as_array().unwrap().last().unwrap().clone();
    last["content"].as_str().unwrap_or_default().to_owned()
}

/// The ref of the element that a view calls so.
fn reference(view: &str, words: &str) -> String {
    let line = view.lines().find(|line| line.starts_with(words));
    let line = line.unwrap_or_else(|| panic!("no `{words}` in:\n{view}"));
    line.split_once('[').unwrap().1.split_once(']').unwrap().0.to_owned()
}

fn browse(arguments: Value) -> Option<Answer> {
    Some(Answer::script(&format!("browser: {arguments}")))
}

fn program(server: ModelServer, config: &str) -> Program {
    let program = Program::with(server);
    let path = program.data.path().join(".config/windlass/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let allowed = "[sandbox]\nallow_addresses = ['127.0.0.2']\n";
    std::fs::write(path, format!("{allowed}{config}")).unwrap();
    program
}

fn windlass(program: &Program, args: &[&str]) -> Ran {
    let mut command = program.command(args);
    command.env("WINDLASS_BROWSER", needed("WINDLASS_TEST_CHROMIUM")).output().unwrap().into()
}

/// A model that cannot see finds the right button by the view alone; the form is sent after a
/// permission, in a browser that was started again. ES-007, ES-032, ES-190, ES-249, ES-260, ES-261
#[test]
fn a_model_without_vision_orders_by_the_view_and_a_permission() {
    let shop = shop();
    let (base, server) = (shop.base.clone(), ModelServer::start_empty());
    server.answer_with(move |request| {
        let body = request.json();
        let seen = last_result(&body);
        let replies = body["messages"].as_array().unwrap().iter();
        match replies.filter(|message| message["role"] == "assistant").count() {
            0 => browse(json!({ "action": "navigate", "url": base })),
            1 => {
                let name = reference(&seen, "textbox \"Name\"");
                browse(json!({ "action": "type", "ref": name, "text": "Ann" }))
            }
            2 => {
                let button = reference(&seen, "button \"Order now\"");
                browse(json!({ "action": "click", "ref": button }))
            }
            _ => Some(Answer::script("say: ordered")),
        }
    });
    let program = program(server, "[models.\"gpt-4o\"]\nvision = false\n");
    let ran = windlass(&program, &["run", "order paint", "--json"]).expect(3);
    let checks: Vec<String> = ran
        .json_lines()
        .iter()
        .filter(|event| event["event_type"] == "risk_check")
        .map(|event| {
            format!("{} {}", event["data"]["risk"], event["data"]["class"]).replace('"', "")
        })
        .collect();
    assert_eq!(checks, ["MEDIUM read", "MEDIUM build", "HIGH publish"]);
    let asked = windlass(&program, &["inbox"]).expect(0).stdout.replace(&shop.base, "http://shop");
    assert!(asked.contains("submits a form to http://shop/order (POST)"), "{asked}");
    assert!(asked.contains("+ name: Ann"), "{asked}");
    assert!(shop.orders.lock().unwrap().is_empty());
    let task = program.task();
    let ran = windlass(&program, &["answer", &task, "Allow", "--resume", "--json"]).expect(0);
    assert_eq!(*shop.orders.lock().unwrap(), ["name=Ann&go=1"]);
    let urls: Vec<Value> = ran.result()["evidence_refs"].as_array().unwrap().clone();
    assert!(
        urls.iter().any(|one| one["type"] == "url" && one["uri"] == format!("{}/order", shop.base)),
        "{urls:?}"
    );
    let kept = program.data_directory().join("browser");
    assert_eq!(std::fs::read_dir(kept).unwrap().count(), 0, "cookies go with the task");
    let tools = program.server.requests()[0].json()["tools"].to_string();
    assert!(tools.contains("\"browser\""), "{tools}");
}

/// One that can see gets the picture. ES-249, ES-305
#[test]
fn a_model_with_vision_gets_the_picture_and_the_result_names_it() {
    let shop = shop();
    let script = format!(
        "replies: [{{browser: {{action: navigate, url: '{}'}}}}, {{browser: {{action: screenshot}}}}, {{say: seen}}]",
        shop.base
    );
    let program = program(ModelServer::start(&script), "[models.\"gpt-4o\"]\nvision = true\n");
    let ran = windlass(&program, &["run", "look", "--json"]).expect(0);
    let body = program.server.requests().last().unwrap().body.clone();
    assert!(String::from_utf8_lossy(&body).contains("data:image/png;base64,"));
    let refs = ran.result()["evidence_refs"].as_array().unwrap().clone();
    let picture = refs.iter().find(|one| one["type"] == "screenshot").expect("a screenshot");
    let path = picture["uri"].as_str().unwrap().strip_prefix("file://").unwrap().to_owned();
    assert!(std::fs::read(path).unwrap().starts_with(b"\x89PNG"));
}

/// Where it runs is the user's choice alone; outside of the sandbox the same addresses are refused.
#[test]
fn on_the_host_a_browser_runs_by_the_users_configuration_alone() {
    let shop = shop();
    let script = format!(
        "replies: [{{browser: {{action: navigate, url: '{}'}}}}, {{browser: {{action: navigate, url: 'http://127.0.0.1:9/'}}}}, {{say: seen}}]",
        shop.base
    );
    let program = program(ModelServer::start(&script), "[web]\nbrowser_placement = 'host'\n");
    windlass(&program, &["run", "look", "--quiet"]).expect(0);
    let requests: Vec<Value> = program.server.requests().iter().map(|one| one.json()).collect();
    assert!(last_result(&requests[1]).contains("heading 1 \"Paint shop\""), "{}", requests[1]);
    let refused = last_result(&requests[2]);
    assert!(refused.contains("127.0.0.1") && !refused.contains("Paint"), "{refused}");
    let own = program.workspace().join(".windlass/config.toml");
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    std::fs::write(own, "[web]\nbrowser_placement = 'host'\n").unwrap();
    let said = windlass(&program, &["run", "look"]).expect(0).stderr;
    let ignored = "`web.browser_placement` is ignored: only your own file may set it";
    assert!(said.contains(ignored), "{said}");
}

/// Nothing outlives a kill.
#[test]
fn a_browser_ends_with_the_process_that_started_it() {
    let shop = shop();
    let script = format!(
        "replies: [{{browser: {{action: navigate, url: '{}'}}}}, {{bash: 'mkfifo gate; echo > ready; cat gate'}}, {{say: done}}]",
        shop.base
    );
    let program = program(ModelServer::start(&script), "");
    let mut command = program.command(&["run", "look", "--quiet"]);
    command.env("WINDLASS_BROWSER", needed("WINDLASS_TEST_CHROMIUM"));
    let mut child = command.spawn().unwrap();
    let wait = |what: &dyn Fn() -> bool| {
        let began = std::time::Instant::now();
        while !what() {
            assert!(began.elapsed().as_secs() < 60, "waited too long");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    wait(&|| program.workspace().join("ready").exists());
    let here = program.real_workspace();
    assert!(browsers(&here) > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    wait(&|| browsers(&here) == 0);
}

/// How many processes of Chromium have this directory as their own.
/// Its memory counts in the limit of the task: a page that takes more is ended, and the task continues.
#[test]
fn a_page_that_takes_more_memory_than_the_task_has_is_ended() {
    let results = |memory: &str| {
        let shop = shop();
        let (url, server) = (format!("{}/hungry", shop.base), ModelServer::start_empty());
        server.answer_with(move |request| {
            let body = request.json();
            let replies = body["messages"].as_array().unwrap().iter();
            match replies.filter(|message| message["role"] == "assistant").count() {
                0 => browse(json!({ "action": "navigate", "url": url })),
                1 => browse(json!({ "action": "wait", "text": "is full" })),
                2 => Some(Answer::script("bash: echo the task continues")),
                _ => Some(Answer::script("say: done")),
            }
        });
        let program = program(server, &format!("memory = '{memory}'\n"));
        windlass(&program, &["run", "look at it", "--quiet"]).expect(0);
        let events = program.windlass(&["events", &program.task(), "--json"]).expect(0);
        let results = events.json_lines().into_iter();
        let results = results.filter(|event| event["event_type"] == "tool_result");
        results.map(|result| result["data"].to_string()).collect::<Vec<_>>()
    };
    let enough = results("3g");
    assert!(enough[1].contains("is full"), "{enough:?}");
    let little = results("700m");
    let ended = ["for want of memory", "the browser is gone"];
    assert!(ended.iter().any(|words| little[1].contains(words)), "{little:?}");
    assert!(little[2].contains("the task continues"), "{little:?}");
}

fn browsers(directory: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_ours = |entry: &std::fs::DirEntry| {
        let path = entry.path();
        let command = std::fs::read(path.join("cmdline")).unwrap_or_default();
        let environment = std::fs::read_link(path.join("cwd")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("windlass-browser")
            && environment.display().to_string() == directory
    };
    processes.filter(is_ours).count()
}

/// O-21: no Chromium, no tool; `doctor` says how to get it.
#[test]
fn without_chromium_the_tool_is_not_offered_and_doctor_says_why() {
    let program = program(ModelServer::start("match: [{say: hello}]"), "");
    let mut command = program.command(&["doctor"]);
    let said: Ran =
        command.env_remove("WINDLASS_BROWSER").env("PATH", "/nowhere").output().unwrap().into();
    assert!(
        said.stdout.contains("`browser` is not offered: Chromium is not installed"),
        "{said:?}"
    );
    assert!(said.stdout.contains("apt install chromium"), "{said:?}");
    program.windlass(&["run", "look", "--quiet"]).expect(0);
    assert!(!program.server.requests()[0].json()["tools"].to_string().contains("\"browser\""));
}
