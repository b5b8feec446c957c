//! What is put into a message besides words: pictures, and names of files.

use windlass_testkit::png;

use crate::desk::{Desk, assert_live_equals_reload};

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
