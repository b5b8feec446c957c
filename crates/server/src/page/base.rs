//! The path under which a proxy shows the server. Pages are drawn as if there were none; what leaves gets it.
//!
//! Invariant: only addresses of our own markup are changed. Text of others is escaped, so it holds no such attribute.

/// Attributes that hold an address of this server.
const ADDRESSES: [&str; 6] = ["href", "src", "action", "data-post", "data-change", "data-then"];

/// Markup with the path before each address of this server.
pub fn with_base(markup: &str, base: &str) -> String {
    if base.is_empty() {
        return markup.to_owned();
    }
    ADDRESSES.iter().fold(markup.to_owned(), |markup, name| {
        markup.replace(&format!(" {name}=\"/"), &format!(" {name}=\"{base}/"))
    })
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;

    #[test]
    fn addresses_get_the_path_and_texts_do_not() {
        let evil = r#" href="/evil"#;
        let markup = html! {
            a href="/tasks" title=(evil) { (evil) }
            a href="https://example.org/" {}
            button data-post="/v1/tasks" {}
            form action="/tasks" {}
        };
        let moved = with_base(&markup.0, "/w");
        assert!(moved.contains(r#"<a href="/w/tasks""#), "{moved}");
        assert!(moved.contains(r#"data-post="/w/v1/tasks""#), "{moved}");
        assert!(moved.contains(r#"action="/w/tasks""#), "{moved}");
        assert_eq!(moved.matches("/w/").count(), 3, "{moved}");
        assert_eq!(with_base(&markup.0, ""), markup.0);
    }
}
