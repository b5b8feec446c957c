//! The page by keyboard alone: keys, their list, and the palette.

use crate::desk::Desk;

const ASKS: &str = "
replies:
  - bash: rm notes.md
  - say: removed it
";

/// The question is on the page and can be answered: its text is there a moment before its buttons are.
const ANSWERABLE: &str = "document.querySelector('.question button:not(:disabled)')";

/// Whatever can be done from a page is found by its name, and done by Enter.
#[test]
fn the_palette_answers_goes_and_writes_commands() {
    let mut desk = Desk::playing(ASKS);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "tidy up");
    page.shows("Run this command?");
    page.press("Control+k");
    page.until("document.querySelector('#palette').open");
    page.write("#palette-query", "answer allow");
    page.until("document.querySelector('#palette-list li[aria-selected=true]').textContent.includes('Allow')");
    page.press("Enter");
    page.shows("Allow by ada");
    page.shows("removed it");

    page.press("Control+k");
    page.write("#palette-query", "cost");
    page.until("[...document.querySelectorAll('#palette-list li')].some(one => one.textContent.startsWith('Command/cost'))");
    let command = "[...document.querySelectorAll('#palette-list li')].findIndex(one => one.textContent.startsWith('Command/cost'))";
    for _ in 0..page.eval(command).as_u64().unwrap() {
        page.press("ArrowDown");
    }
    page.press("Enter");
    page.until("document.querySelector('#message').value === '/cost '");
    page.until("document.activeElement.id === 'message'");

    page.press("Control+k");
    page.write("#palette-query", "page inbox");
    page.press("Enter");
    page.until("location.pathname === '/inbox' && document.readyState === 'complete'");
    page.shows("Nothing waits for you");
    page.press("Control+k");
    page.write("#palette-query", "tidy");
    page.press("ArrowUp");
    page.press("Enter");
    page.until("location.pathname === '/tasks' && location.search === '?q=tidy'");
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// Every key is listed, and each does what the list says; none does anything while somebody writes.
#[test]
fn keys_are_listed_and_do_nothing_while_somebody_writes() {
    let mut desk = Desk::playing(ASKS);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "tidy up");
    page.shows("Run this command?");
    page.until("document.querySelector('#message').value === ''");
    page.press("?");
    page.until("document.querySelector('#keys').open");
    page.shows("Go to the next question");
    page.shows("Find a page, an action or a command");
    page.press("Escape");
    page.until("!document.querySelector('#keys').open");
    // The question is drawn again when its task is seen to wait.
    page.shows("Waiting for you");
    page.until(ANSWERABLE);
    // A list that was just closed has the focus for a moment; a key that comes then is not lost.
    page.eval("document.querySelector('#keys button').dispatchEvent(new KeyboardEvent('keydown', { key: 'q', bubbles: true }))");
    page.until("document.activeElement.matches('.question button')");
    page.eval("document.activeElement.blur()");
    page.press("q");
    page.until("document.activeElement.matches('.question button')");
    page.press("/");
    page.until("document.activeElement.id === 'message'");
    for letter in ["i", "t", "?"] {
        page.press(letter);
    }
    page.until("document.querySelector('#message').value === 'it?'");
    assert_eq!(page.eval("document.querySelector('#keys').open"), false);
    page.press("Escape");
    page.eval("document.activeElement.blur()");
    page.press("t");
    page.until("location.pathname === '/tasks' && document.readyState === 'complete'");
    page.press("i");
    page.until("location.pathname === '/inbox' && document.readyState === 'complete'");
    // By keyboard alone: to the question, and its first answer.
    page.until(ANSWERABLE);
    page.press("q");
    page.press("Enter");
    page.shows("Allow by ada");
}

/// Whatever is drawn anew, the focus stays on what does and says the same. Where nothing does, it is on no button.
#[test]
fn the_focus_stays_on_what_is_drawn_anew_or_moved() {
    let mut desk = Desk::playing(ASKS);
    let (_context, page) = desk.sign_in();
    desk.start(&page, "tidy up");
    page.until(ANSWERABLE);
    page.press("q");
    let is_on = |words: &str| {
        format!(
            "document.activeElement.matches('.question button') && document.activeElement.textContent === '{words}'"
        )
    };
    page.until(&is_on("Allow"));
    let part = "const part = document.querySelector('.question').closest('[data-h]'), list = [...part.parentElement.children].map(one => one.id);";
    let drawn_anew = |change: &str| {
        page.eval(&format!(
            "{{ {part} window.before = document.activeElement;
                applyPatch({{ view, put: [[part.id, String(Math.random()), {change}]] }}); }}"
        ));
        assert_eq!(page.eval("window.before.isConnected"), false, "it was drawn anew");
    };
    // Another link comes before it.
    drawn_anew("'<a href=\"/tasks\">new</a>' + part.innerHTML");
    assert_eq!(page.eval(&is_on("Allow")), true);
    // Its part moves to the other end of the list.
    page.eval(&format!("{{ {part} window.first = list[0]; applyPatch({{ view, order: {{ log: [part.id, ...list.filter(one => one !== part.id)] }} }}); }}"));
    assert_eq!(
        page.eval(
            "document.querySelector('#log').firstElementChild.contains(document.activeElement)"
        ),
        true
    );
    assert_eq!(page.eval(&is_on("Allow")), true);
    // Where one writes, what is written and the place in it stay too.
    page.write(".own-words input", "keep it");
    page.eval("document.activeElement.setSelectionRange(2, 4)");
    drawn_anew("part.innerHTML");
    let field = "(({ value, selectionStart, selectionEnd }) => [value, selectionStart, selectionEnd])(document.activeElement)";
    assert_eq!(page.eval(field), serde_json::json!(["keep it", 2, 4]));
    // Nothing there does the same any more: Enter answers nothing.
    page.press("q");
    page.eval("document.activeElement.blur()");
    page.press("q");
    page.until(&is_on("Allow"));
    drawn_anew("part.innerHTML.replaceAll('Allow', 'Destroy')");
    assert_eq!(
        page.eval(
            "document.activeElement === document.querySelector('.question').closest('[data-h]')"
        ),
        true
    );
    page.press("Enter");
    page.reload();
    page.shows("Run this command?");
    assert_eq!(
        page.eval("document.querySelectorAll('.question .answers button').length > 1"),
        true
    );
    assert_eq!(page.complaints(), Vec::<String>::new());
}
