//! The fragments of a page that change while it is open, and the patches that bring an open page up to date.
//!
//! Invariants:
//! - A first load and a patch draw a fragment with the same function, so that an open page and a reloaded one are the same.
//! - A patch holds what differs from the one before it. The first patch of a connection holds everything, and the browser
//!   takes what differs from what it has: nothing can be missed between a load and its connection.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use maud::{Markup, PreEscaped, Render, html};
use serde::Serialize;

use super::base::with_base;

/// A piece of a page that is replaced as a whole: its id, its content and a hash of the content.
#[derive(Clone, Debug)]
pub struct Fragment {
    id: String,
    html: String,
    hash: String,
}

impl Fragment {
    /// A piece by an id that is unique on its page.
    pub fn new(id: impl Into<String>, content: Markup) -> Self {
        let mut hasher = DefaultHasher::new();
        content.0.hash(&mut hasher);
        Self { id: id.into(), html: content.0, hash: format!("{:x}", hasher.finish()) }
    }
}

impl Render for Fragment {
    fn render(&self) -> Markup {
        html! { div id=(self.id) data-h=(self.hash) { (PreEscaped(&self.html)) } }
    }
}

/// Pieces in an order that may change.
#[derive(Clone, Debug)]
pub struct List {
    id: &'static str,
    fragments: Vec<Fragment>,
}

impl Render for List {
    fn render(&self) -> Markup {
        html! { div id=(self.id) { @for fragment in &self.fragments { (fragment) } } }
    }
}

/// Everything of a page that changes.
#[derive(Clone, Debug, Default)]
pub struct PageContent {
    title: String,
    fragments: Vec<Fragment>,
    lists: Vec<List>,
}

impl PageContent {
    /// A page of this title, with nothing on it.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// The same with a piece.
    pub fn with_fragment(mut self, id: impl Into<String>, content: Markup) -> Self {
        self.fragments.push(Fragment::new(id, content));
        self
    }

    /// The same with a list.
    pub fn with_list(mut self, id: &'static str, fragments: Vec<Fragment>) -> Self {
        self.lists.push(List { id, fragments });
        self
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    /// A piece or a list, where the frame of the page wants it.
    pub fn place(&self, id: &str) -> Markup {
        let fragment = self.fragments.iter().find(|fragment| fragment.id == id).map(Render::render);
        let list = || self.lists.iter().find(|list| list.id == id).map(Render::render);
        fragment.or_else(list).unwrap_or_default()
    }

    fn all(&self) -> impl Iterator<Item = &Fragment> {
        self.fragments.iter().chain(self.lists.iter().flat_map(|list| &list.fragments))
    }
}

/// What an open page has to change.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Patch {
    /// The page it is for, as the browser asked for it.
    view: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Pieces that are new or different: id, mark, content.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    put: Vec<[String; 3]>,
    /// Lists whose pieces came, went or moved: what they hold now, in order.
    #[serde(skip_serializing_if = "HashMap::is_empty")]
    order: HashMap<String, Vec<String>>,
}

impl Patch {
    /// The same under a path of a proxy's.
    pub fn with_base(mut self, base: &str) -> Self {
        for [_, _, html] in &mut self.put {
            *html = with_base(html, base);
        }
        self
    }
}

/// What a connection has sent of one page.
#[derive(Debug, Default)]
pub struct SentContent {
    title: Option<String>,
    marks: HashMap<String, String>,
    orders: HashMap<&'static str, Vec<String>>,
}

impl SentContent {
    /// What has changed since the last patch; `None` for nothing.
    pub fn patch(&mut self, view: &str, live: &PageContent) -> Option<Patch> {
        let title = (self.title.as_deref() != Some(&live.title)).then(|| live.title.clone());
        let mut put = Vec::new();
        let mut kept = HashSet::new();
        for fragment in live.all() {
            kept.insert(&*fragment.id);
            if self.marks.get(&fragment.id) != Some(&fragment.hash) {
                self.marks.insert(fragment.id.clone(), fragment.hash.clone());
                put.push([fragment.id.clone(), fragment.hash.clone(), fragment.html.clone()]);
            }
        }
        self.marks.retain(|id, _| kept.contains(id.as_str()));
        let mut order = HashMap::new();
        for list in &live.lists {
            let ids: Vec<String> =
                list.fragments.iter().map(|fragment| fragment.id.clone()).collect();
            if self.orders.get(list.id) != Some(&ids) {
                self.orders.insert(list.id, ids.clone());
                order.insert(list.id.to_owned(), ids);
            }
        }
        if title.is_none() && put.is_empty() && order.is_empty() {
            return None;
        }
        self.title = Some(live.title.clone());
        Some(Patch { view: view.to_owned(), title, put, order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(title: &str, rows: &[(&str, &str)]) -> PageContent {
        let row = |(id, text): &(&str, &str)| Fragment::new(*id, html! { (text) });
        PageContent::new(title)
            .with_fragment("head", html! { "head" })
            .with_list("rows", rows.iter().map(row).collect())
    }

    fn ids(patch: &Patch) -> Vec<&str> {
        patch.put.iter().map(|[id, ..]| id.as_str()).collect()
    }

    #[test]
    fn the_first_patch_holds_everything_and_the_next_what_differs() {
        let mut sent = SentContent::default();
        let first = sent.patch("/x", &page("one", &[("a", "1"), ("b", "2")])).unwrap();
        assert_eq!((ids(&first), first.title.as_deref()), (vec!["head", "a", "b"], Some("one")));
        assert_eq!(first.order["rows"], ["a", "b"]);
        assert_eq!(sent.patch("/x", &page("one", &[("a", "1"), ("b", "2")])), None);
        let second = sent.patch("/x", &page("one", &[("a", "1"), ("b", "3")])).unwrap();
        assert_eq!((ids(&second), &second.title, second.order.len()), (vec!["b"], &None, 0));
        let third = sent.patch("/x", &page("two", &[("c", "4"), ("b", "3")])).unwrap();
        assert_eq!((ids(&third), third.title.as_deref()), (vec!["c"], Some("two")));
        assert_eq!(third.order["rows"], ["c", "b"]);
    }

    #[test]
    fn a_fragment_that_comes_back_is_sent_again() {
        let mut sent = SentContent::default();
        sent.patch("/x", &page("one", &[("a", "1")]));
        sent.patch("/x", &page("one", &[]));
        let back = sent.patch("/x", &page("one", &[("a", "1")])).unwrap();
        assert_eq!(ids(&back), ["a"]);
    }

    #[test]
    fn what_is_placed_on_the_page_is_what_a_patch_carries() {
        let live = page("one", &[("a", "<b>")]);
        let patch = SentContent::default().patch("/x", &live).unwrap();
        let [id, hash, content] = &patch.put[1];
        let drawn = format!(r#"<div id="{id}" data-h="{hash}">{content}</div>"#);
        assert_eq!(live.place("rows").0, format!(r#"<div id="rows">{drawn}</div>"#));
        assert!(content.contains("&lt;b&gt;"), "{content}");
    }
}
