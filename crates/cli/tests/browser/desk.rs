//! A person's desk: a server, and browsers that are signed in to it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};
use std::sync::LazyLock;

use rustix::process::{Pid, Signal, kill_process};
use windlass_testkit::{Browser, Context, ModelServer, Page};

use crate::program::{Program, needed};

/// One browser for all tests; each has a context of its own in it.
static BROWSER: LazyLock<Browser> =
    LazyLock::new(|| Browser::start(&needed("WINDLASS_TEST_CHROMIUM")));

/// A server with its page.
pub struct Desk {
    pub program: Program,
    serve: Child,
    /// Where the page is, without a slash at the end.
    pub url: String,
    link: String,
}

impl Desk {
    /// A server whose model plays a script.
    pub fn playing(script: &str) -> Self {
        Self::with(ModelServer::start(script))
    }

    pub fn with(server: ModelServer) -> Self {
        Self::of(Program::with(server))
    }

    /// The server of a program that is set up already.
    pub fn of(program: Program) -> Self {
        let mut command = program.command(&["serve", "--listen", "127.0.0.1:0"]);
        let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut serve = command.spawn().unwrap();
        let mut lines = BufReader::new(serve.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("/login#") {
            assert!(lines.read_line(&mut said).unwrap() > 0, "serve ended: {said}");
        }
        // Whatever else it says must not fill the pipe.
        std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
        let link = said.split_whitespace().find(|word| word.contains("/login#")).unwrap();
        let (url, link) = (link.split("/login").next().unwrap().to_owned(), link.to_owned());
        Self { program, serve, url, link }
    }

    /// Somebody's browser, signed in by the link that `serve` printed or, after that, by one of `windlass open`.
    pub fn sign_in(&mut self) -> (Context<'static>, Page<'static>) {
        let context = BROWSER.context();
        let page = context.page();
        page.go(&self.link());
        page.until("!location.pathname.endsWith('/login') && document.querySelector('#composer')");
        page.until("document.readyState === 'complete'");
        (context, page)
    }

    /// A browser of somebody who is not signed in.
    pub fn visit(&self) -> (Context<'static>, Page<'static>) {
        let context = BROWSER.context();
        let page = context.page();
        (context, page)
    }

    /// A link that signs in once.
    pub fn link(&mut self) -> String {
        let first = std::mem::take(&mut self.link);
        if !first.is_empty() {
            return first;
        }
        let ran = self.program.windlass(&["open", "--print"]);
        let printed = format!("{}{}", ran.stdout, ran.stderr);
        let link = printed.split_whitespace().find(|word| word.contains("/login#"));
        link.unwrap_or_else(|| panic!("{printed}")).to_owned()
    }

    /// Starts a task from the first page, and waits for its session.
    pub fn start(&self, page: &Page<'_>, goal: &str) {
        page.go(&format!("{}/", self.url));
        page.write("#message", goal);
        page.press("Enter");
        page.until("location.pathname.includes('/sessions/')");
        page.until("document.readyState === 'complete' && document.querySelector('#log')");
    }

    /// Waits until every task has ended, without looking at a page.
    pub fn until_done(&self) {
        let began = std::time::Instant::now();
        loop {
            let tasks = self.program.windlass(&["tasks", "--json"]).expect(0).json_lines();
            if tasks.iter().all(|task| task["status"] == "done") {
                return;
            }
            assert!(began.elapsed().as_secs() < 60, "{tasks:?}");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// Stops the server where it is, with its connections open, or lets it continue.
    pub fn halt(&self, halted: bool) {
        let process = Pid::from_child(&self.serve);
        kill_process(process, if halted { Signal::STOP } else { Signal::CONT }).unwrap();
    }

    pub fn go(&self, page: &Page<'_>, path: &str) {
        page.go(&format!("{}{path}", self.url));
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let _ = self.serve.kill();
        let _ = self.serve.wait();
    }
}

/// Waits until every part of the page is the one that the server draws now: nothing is on its way any more.
const ARRIVED: &str = "(async () => {
    const marks = (root) => [...root.querySelectorAll('main [data-h]')].map((one) => `${one.id} ${one.dataset.h}`).join();
    for (const end = Date.now() + 30_000; Date.now() < end;) {
        const page = await (await fetch(location.href)).text();
        if (marks(new DOMParser().parseFromString(page, 'text/html')) === marks(document)) return;
        await new Promise((done) => setTimeout(done, 50));
    }
})()";

/// What a page shows, once with patches and once loaded again, must be the same.
pub fn assert_live_equals_reload(page: &Page<'_>) {
    page.eval(ARRIVED);
    // What is seen, and what is folded away as well.
    let text = "(({ innerText, textContent }) => [innerText, textContent])(document.querySelector('main'))";
    let live = page.eval(text);
    page.reload();
    assert_eq!(page.eval(text), live);
}
