//! What is put into a message besides words: pictures, and names of files.

use windlass_testkit::{Answer, Gate, png};

use crate::desk::{Desk, assert_live_equals_reload};
use crate::program::Program;

/// A picture is chosen with a goal, another is pasted into a message; the model sees both, and the page shows them.
#[test]
fn pictures_are_chosen_and_pasted_and_the_model_sees_them() {
    let mut desk = Desk::playing("replies: [{say: a first look}, {say: a second look}]");
    let (_context, page) = desk.sign_in();
    let shot = desk.program.workspace().join("shot.png");
    std::fs::write(&shot, png(40, 30, 1)).unwrap();
    page.choose_file("#pictures", &shot);
    page.until("document.querySelector('#attached')?.innerText.includes('shot.png')");
    page.write("#message", "make it look like this");
    page.press("Enter");
    page.shows("a first look");
    page.until("document.querySelector('.pictures img')?.naturalWidth === 40");
    let first = desk.program.server.requests()[0].json().to_string();
    assert!(first.contains("data:image/png;base64,iVBORw0KGgo"), "{first}");

    let paste = "fetch(document.querySelector('.pictures img').src).then(one => one.blob()).then(blob => {
        const data = new DataTransfer();
        data.items.add(new File([blob], 'pasted.png', { type: 'image/png' }));
        document.querySelector('#message').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
    })";
    page.eval(paste);
    page.until("document.querySelector('#attached').innerText.includes('pasted.png')");
    page.eval(paste);
    page.until("document.querySelectorAll('#attached .chip').length === 2");
    page.click("#attached button", "Remove");
    page.until("document.querySelectorAll('#attached .chip').length === 1");
    page.write("#message", "and this");
    page.press("Enter");
    page.shows("a second look");
    page.until("document.querySelectorAll('.pictures img').length === 2");
    let second = desk.program.server.requests()[1].json().to_string();
    assert!(second.contains("data:image/png;base64,"), "{second}");
    page.until("document.querySelectorAll('.ended').length === 2");
    assert_live_equals_reload(&page);
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// A message with a picture waits like any other, and a skill is offered after a slash.
#[test]
fn a_picture_waits_with_its_message_and_skills_are_offered() {
    let gate = Gate::new();
    let program = Program::playing("replies: []");
    let skill = program.data.path().join(".windlass/skills/release");
    std::fs::create_dir_all(&skill).unwrap();
    let text =
        "---\nname: release\ndescription: Use when a release is to be made.\n---\nRun the tests.\n";
    std::fs::write(skill.join("SKILL.md"), text).unwrap();
    let shot = program.workspace().join("shot.png");
    std::fs::write(&shot, png(40, 30, 1)).unwrap();
    let mut desk = Desk::of(program);
    let (_context, page) = desk.sign_in();
    desk.program.server.next(Answer::script("say: the first").gated(0, &gate));
    desk.program.server.next(Answer::script("say: the second"));
    desk.start(&page, "work for a while");
    page.until("document.querySelector('[data-busy]')");
    page.write("#message", "/rel");
    page.until("document.querySelector('#completions li:not([hidden])')?.innerText.includes('Use when a release')");
    page.press("Enter");
    page.until("document.querySelector('#message').value === '/release '");
    page.eval("document.querySelector('#message').value = ''");
    page.choose_file("#pictures", &shot);
    page.until("document.querySelector('#attached')?.innerText.includes('shot.png')");
    page.write("#message", "like this");
    page.press("Enter");
    page.until("document.querySelector('.queued')?.innerText.includes('shot.png')");
    gate.open();
    page.shows("the second");
    let second = desk.program.server.requests()[1].json().to_string();
    assert!(second.contains("data:image/png;base64,"), "{second}");
}

/// After an `@`, files of the session's directory are offered, and chosen by keyboard.
#[test]
fn files_are_completed_after_an_at_sign() {
    let mut desk = Desk::playing("replies: [{say: ready}, {say: read it}]");
    let (_context, page) = desk.sign_in();
    for name in ["notes.md", "novel.md", "src/main.rs"] {
        let path = desk.program.workspace().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "text\n").unwrap();
    }
    page.eval("document.querySelector('#options').open = true");
    page.write("input[name=workspace]", &desk.program.real_workspace());
    page.write("#message", "be ready");
    page.press("Enter");
    page.shows("ready");
    page.shows("Details");
    page.write("#message", "summarize @no");
    page.until("!document.querySelector('#files').hidden");
    let offered = "[...document.querySelectorAll('#files li')].map(one => one.textContent).join()";
    page.until(&format!("{offered}.includes('notes.md') && {offered}.includes('novel.md')"));
    assert!(!page.eval(offered).to_string().contains("main.rs"));
    let second = "document.querySelectorAll('#files li')[1]";
    let name = page.eval(&format!("{second}.textContent")).as_str().unwrap().to_owned();
    page.press("ArrowDown");
    page.until(&format!("{second}.getAttribute('aria-selected') === 'true'"));
    page.press("Enter");
    page.until(&format!("document.querySelector('#message').value === 'summarize @{name} '"));
    assert_eq!(desk.program.server.request_count(), 1, "choosing a file sends nothing");
    page.press("Enter");
    page.shows("read it");
    let request = desk.program.server.requests()[1].json().to_string();
    assert!(request.contains(&format!("summarize @{name}")), "{request}");
}

/// Loses the answer to the next change; the server has made it.
const LOSE_ANSWER: &str = "{ const send = window.fetch; window.fetch = async (...args) => {
    const answer = await send(...args);
    if (args[1]?.method !== 'POST') return answer;
    window.fetch = send;
    throw new TypeError('lost');
} }";

/// A goal or a message whose answer was lost is sent again, and counts once. The next one counts too.
#[test]
fn what_is_sent_again_after_a_lost_answer_counts_once() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    desk.program.server.next(Answer::script("say: first answer").gated(0, &gate));
    let (_context, page) = desk.sign_in();
    page.write("#message", "begin");
    page.eval(LOSE_ANSWER);
    page.press("Enter");
    page.shows("The server cannot be reached");
    page.press("Enter");
    page.until("location.pathname.includes('/sessions/')");
    assert_eq!(desk.program.windlass(&["tasks", "--json"]).expect(0).json_lines().len(), 1);

    page.shows("Thinking");
    page.write("#message", "pears");
    page.eval(LOSE_ANSWER);
    page.press("Enter");
    page.shows("The server cannot be reached");
    page.press("Enter");
    page.until("document.querySelector('#message').value === ''");
    for text in ["pears", "plums"] {
        page.write("#message", text);
        page.press("Enter");
        page.until("document.querySelector('#message').value === ''");
    }
    let queued =
        "[...document.querySelectorAll('.queued-text')].map((one) => one.innerText).join()";
    page.until(&format!("{queued} === 'pears,pears,plums'"));
    gate.open();
}

/// What cannot be attached is said, and text that is dropped is written by the browser.
#[test]
fn only_pictures_are_attached_and_dropped_text_is_not_taken() {
    let mut desk = Desk::playing("replies: []");
    let (_context, page) = desk.sign_in();
    let drop = |fill: &str| {
        page.eval(&format!(
            "(() => {{ const data = new DataTransfer(); {fill};
                const event = new DragEvent('drop', {{ dataTransfer: data, bubbles: true, cancelable: true }});
                document.querySelector('#message').dispatchEvent(event);
                return event.defaultPrevented; }})()"
        ))
    };
    assert_eq!(drop("data.setData('text/plain', 'words')"), false);
    assert_eq!(drop("data.items.add(new File(['x'], 'a.txt', { type: 'text/plain' }))"), true);
    page.shows("Only pictures can be attached");
    let shot = desk.program.workspace().join("shot.png");
    std::fs::write(&shot, png(40, 30, 1)).unwrap();
    page.choose_file("#pictures", &shot);
    page.until("document.querySelector('#attached').innerText.includes('shot.png')");
    page.eval("document.querySelector('#composer').requestSubmit()");
    page.shows("Write something with it");
}

/// A screen reader learns which entry of a list is chosen, and a reply when it is complete.
#[test]
fn lists_and_finished_replies_reach_a_screen_reader() {
    let gate = Gate::default();
    let mut desk = Desk::playing("replies: []");
    let long = format!("say: {} the last word", "word ".repeat(300));
    desk.program.server.next(Answer::script(&long).gated(2, &gate));
    let (_context, page) = desk.sign_in();
    desk.start(&page, "say it");
    page.shows("word word");
    page.write("#message", "/");
    let state = |name: &str| format!("document.querySelector('#message').getAttribute('{name}')");
    page.until(&format!(
        "{} === 'combobox' && {} === 'completions'",
        state("role"),
        state("aria-controls")
    ));
    page.press("ArrowDown");
    let chosen = format!("document.getElementById({})", state("aria-activedescendant"));
    page.until(&format!(
        "{chosen}.getAttribute('aria-selected') === 'true' && {chosen}.previousElementSibling"
    ));
    page.press("Escape");
    page.until(&format!(
        "{} === null && {} === null",
        state("role"),
        state("aria-activedescendant")
    ));
    assert_eq!(page.eval("document.querySelector('#last-reply').textContent"), "");
    gate.open();
    page.until("document.querySelector('#last-reply').textContent.endsWith('the last word')");
}
