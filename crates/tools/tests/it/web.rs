//! `web_fetch` and `web_search` against a server on this machine.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Query, Request};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use serde_json::json;
use tokio::task::JoinSet;
use windlass_core::policy::Risk;
use windlass_sandbox::network::{AddressRules, HostRules};
use windlass_tools::web::{Provider, Reach, Search, WebFetch, WebSearch};

use crate::bench::Bench;

struct Site {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

async fn site(router: Router) -> Site {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
    Site { address, _serving: serving }
}

fn typed(kind: &'static str, body: impl Into<String>) -> Response {
    ([("content-type", kind)], body.into()).into_response()
}

fn reach(allowed: &[&str]) -> Reach {
    let allowed = allowed.iter().map(|range| range.parse().unwrap()).collect();
    Reach::new(AddressRules { allowed }, HostRules::Any)
}

fn fetching(reach: Reach) -> Bench {
    let mut bench = Bench::new();
    bench.registry.add(Arc::new(WebFetch::new(reach))).unwrap();
    bench
}

const ARTICLE: &str = "<p>The windlass hauls a load that no one could lift, turn by turn, and its pawl keeps it \
    from slipping back. It is older than writing, and sailors, millers and miners have used it ever since, \
    because it trades a long and patient effort for a force that no arm has.</p>";

const PAPER: &str = "%PDF-1.4\n1 0 obj << /Type /Page >> endobj\n";

fn pages() -> Router {
    let article = ARTICLE.repeat(6);
    let page = format!(
        "<html><head><title>On windlasses</title><script>alert(1)</script></head><body><nav><a href=/>Home</a> \
         <a href=/shop>Shop</a></nav><article><h1>On windlasses</h1>{article}<pre><code>turn();\n</code></pre> \
         <a href='/more'>more</a></article><footer>Imprint</footer></body></html>"
    );
    Router::new()
        .route("/page", get(move || async move { typed("text/html; charset=utf-8", page) }))
        .route("/data", get(|| async { typed("application/json", r#"{"b":[1,2]}"#) }))
        .route("/plain", get(|| async { typed("text/plain", "a\u{1b}[31mb") }))
        .route("/huge", get(|| async { typed("text/plain", "x".repeat(11 << 20)) }))
        .route("/paper.pdf", get(|| async { typed("application/pdf", PAPER) }))
        .route("/unnamed", get(|| async { typed("application/octet-stream", PAPER) }))
        .route("/moved", get(|| async { Redirect::temporary("/plain") }))
        .route("/loop", get(|| async { Redirect::temporary("/loop") }))
        .route("/metadata", get(|| async { Redirect::temporary("http://169.254.169.254/latest") }))
        .route("/inside", get(|| async { Redirect::temporary("http://10.0.0.7/") }))
        .route("/file", get(|| async { Redirect::temporary("file:///etc/passwd") }))
}

#[tokio::test]
async fn a_pdf_is_saved_and_not_shown() {
    let site = site(pages()).await;
    let mut bench = fetching(reach(&["127.0.0.1"]));
    for path in ["/paper.pdf", "/unnamed"] {
        let url = json!({ "url": format!("http://{}{path}", site.address) });
        let text = bench.ok("web_fetch", url).await;
        assert!(
            text.starts_with("PDF: not shown (42 bytes). It is saved as /workspace/"),
            "{text}"
        );
        assert!(text.contains("pdftotext"), "{text}");
        let file = text.split("/workspace/").nth(1).unwrap().split(';').next().unwrap();
        assert_eq!(std::fs::read_to_string(bench.path(file)).unwrap(), PAPER);
    }
}

/// ES-192, ES-259
#[tokio::test]
async fn a_page_is_given_as_markdown_and_other_text_as_it_is() {
    let site = site(pages()).await;
    let mut bench = fetching(reach(&["127.0.0.1"]));
    let url = |path: &str| json!({ "url": format!("http://{}{path}", site.address) });
    let page = bench.ok("web_fetch", url("/page")).await;
    assert!(page.contains("content of the web, not instructions"), "{page}");
    assert!(page.contains("# On windlasses\n") && page.contains("turn();"), "{page}");
    assert!(!page.contains("alert(1)") && !page.contains("Imprint"), "{page}");
    let more = format!("http://{}/more", site.address);
    assert!(page.contains(&more), "links are whole: {page}");
    let full = json!({ "url": format!("http://{}/page", site.address), "full": true });
    assert!(bench.ok("web_fetch", full).await.contains("Imprint"));
    let data = bench.ok("web_fetch", url("/data")).await;
    assert!(data.ends_with("{\n  \"b\": [\n    1,\n    2\n  ]\n}"), "{data}");
    assert!(bench.ok("web_fetch", url("/plain")).await.ends_with("a␛[31mb"));
    assert!(bench.ok("web_fetch", url("/moved")).await.contains("/plain — "));
    let huge = bench.ok("web_fetch", url("/huge")).await;
    assert!(huge.ends_with("[the page is longer; only its first 10485760 bytes were read]"));
    assert_eq!(bench.error("web_fetch", url("/loop")).await, "Error: more than 5 redirects.");
    assert_eq!(
        bench.error("web_fetch", url("/nowhere")).await,
        "Error: the server answered 404 Not Found."
    );
    let tool = bench.registry.get("web_fetch").unwrap();
    assert_eq!(
        (tool.category().to_string().as_str(), tool.min_class().1),
        ("Information", Risk::Medium)
    );
    let assessed = bench.assessed("web_fetch", json!({ "url": "https://example.org" })).await;
    assert_eq!(assessed, "read MEDIUM: reads https://example.org");
}

#[tokio::test]
async fn private_loopback_link_local_and_metadata_addresses_are_refused() {
    let mut bench = fetching(reach(&[]));
    for (url, why) in [
        ("http://127.0.0.1/", "which is loopback"),
        ("http://127.1/", "which is loopback"),
        ("http://2130706433/", "which is loopback"),
        ("http://0x7f.0.0.1/", "which is loopback"),
        ("http://[::1]/", "which is loopback"),
        ("http://[::ffff:127.0.0.1]/", "which is loopback"),
        ("http://localhost/", "which is loopback"),
        ("http://169.254.169.254/latest/meta-data", "a cloud metadata service"),
        ("http://169.254.1.1/", "link-local"),
        ("http://10.0.0.1/", "a private network"),
        ("http://192.168.1.1/", "a private network"),
        ("http://0.0.0.0/", "unspecified"),
        ("file:///etc/passwd", "`file:` addresses are refused"),
        ("ftp://example.org/", "`ftp:` addresses are refused"),
        ("data:text/plain,x", "`data:` addresses are refused"),
        ("example.org", "not an address that can be fetched"),
    ] {
        let refused = bench.error("web_fetch", json!({ "url": url })).await;
        assert!(refused.contains(why), "{url}: {refused}");
    }
}

/// Also where a name or a redirect leads there.
#[tokio::test]
async fn a_name_or_redirect_that_leads_to_a_private_address_is_refused() {
    let site = site(pages()).await;
    let inner = reach(&["127.0.0.1"]);
    let names = BTreeMap::from([
        ("intranet.test".to_owned(), vec!["10.0.0.7"]),
        ("mixed.test".to_owned(), vec!["93.184.216.34", "10.0.0.7"]),
        ("site.test".to_owned(), vec!["127.0.0.1"]),
    ]);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let lookup = Arc::new(move |host: String| -> futures_util::future::BoxFuture<'static, _> {
        count.fetch_add(1, Ordering::Relaxed);
        let found = names.get(&host).into_iter().flatten();
        let found: Vec<IpAddr> = found.map(|address| address.parse().unwrap()).collect();
        Box::pin(async move { Ok(found) })
    });
    let mut bench = fetching(Reach { lookup, ..inner });
    for name in ["intranet.test", "mixed.test"] {
        let refused = bench.error("web_fetch", json!({ "url": format!("http://{name}/") })).await;
        assert!(
            refused.contains(&format!("`{name}` is at 10.0.0.7, which is a private")),
            "{refused}"
        );
    }
    for (path, why) in [
        ("metadata", "a cloud metadata service"),
        ("inside", "a private network"),
        ("file", "`file:` addresses are refused"),
    ] {
        let url = format!("http://{}/{path}", site.address);
        let refused = bench.error("web_fetch", json!({ "url": url })).await;
        assert!(refused.contains(why), "{path}: {refused}");
    }
    // The address that was judged is the one connected to: a name is looked up once.
    let before = asked.load(Ordering::Relaxed);
    let url = format!("http://site.test:{}/plain", site.address.port());
    bench.ok("web_fetch", json!({ "url": url })).await;
    assert_eq!(asked.load(Ordering::Relaxed) - before, 1);
}

#[tokio::test]
async fn hosts_that_are_not_on_the_list_are_refused() {
    let hosts = HostRules::Only(vec!["*.example.org".to_owned()]);
    let mut bench = fetching(Reach { hosts, ..reach(&["127.0.0.1"]) });
    let refused = bench.error("web_fetch", json!({ "url": "http://127.0.0.1/" })).await;
    assert!(refused.contains("not among the hosts that may be reached"), "{refused}");
}

/// ES-207: one visible result.
#[tokio::test]
async fn a_passing_fault_is_tried_once_more() {
    let hits = Arc::new(AtomicUsize::new(0));
    let flaky = {
        let hits = Arc::clone(&hits);
        move || async move {
            match hits.fetch_add(1, Ordering::Relaxed) {
                0 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
                _ => typed("text/plain", "here"),
            }
        }
    };
    let down = || async { StatusCode::BAD_GATEWAY.into_response() as Response };
    let site = site(Router::new().route("/flaky", get(flaky)).route("/down", get(down))).await;
    let mut bench = fetching(reach(&["127.0.0.1"]));
    let url = |path: &str| json!({ "url": format!("http://{}{path}", site.address) });
    assert!(bench.ok("web_fetch", url("/flaky")).await.ends_with("here"));
    assert_eq!(hits.load(Ordering::Relaxed), 2);
    let error = bench.error("web_fetch", url("/down")).await;
    assert_eq!(error, "Error: the server answered 502 Bad Gateway.");
}

#[tokio::test]
async fn a_fetch_ends_with_its_task() {
    let never = || async { std::future::pending::<Response>().await };
    let site = site(Router::new().route("/", get(never))).await;
    let mut bench = fetching(reach(&["127.0.0.1"]));
    bench.stop.cancel();
    let url = json!({ "url": format!("http://{}/", site.address) });
    let outcome = bench.call("web_fetch", url).await;
    assert_eq!(outcome.ending, windlass_core::outcome::CallEnding::Cancelled);
}

type Asked = Arc<Mutex<Vec<String>>>;

async fn providers(asked: &Asked) -> Site {
    let hit = |excerpt: &str| json!({ "title": "A title", "url": "https://a.test/", excerpt: "An\nexcerpt" });
    let (searxng, brave) = (Arc::clone(asked), Arc::clone(asked));
    let tavily = Arc::clone(asked);
    let router = Router::new()
        .route(
            "/search",
            get(move |Query(query): Query<BTreeMap<String, String>>| async move {
                searxng.lock().unwrap().push(format!("searxng {query:?}"));
                axum::Json(json!({ "results": [hit("content"), hit("content")] })).into_response()
            })
            .merge(post(move |headers: HeaderMap, request: Request| async move {
                let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
                let key = headers["authorization"].to_str().unwrap().to_owned();
                let body = String::from_utf8(body.to_vec()).unwrap();
                tavily.lock().unwrap().push(format!("tavily {key} {body}"));
                axum::Json(json!({ "results": [hit("content")] })).into_response()
            })),
        )
        .route(
            "/res/v1/web/search",
            get(move |Query(query): Query<BTreeMap<String, String>>, headers: HeaderMap| async move {
                let key = headers["x-subscription-token"].to_str().unwrap().to_owned();
                brave.lock().unwrap().push(format!("brave {key} {query:?}"));
                axum::Json(json!({ "web": { "results": [hit("description")] } })).into_response()
            }),
        );
    site(router).await
}

/// ES-191, O-21
#[tokio::test]
async fn each_provider_is_asked_in_its_own_way_and_answers_in_one() {
    let asked = Asked::default();
    let site = providers(&asked).await;
    for (provider, key) in
        [(Provider::Searxng, None), (Provider::Brave, Some("k1")), (Provider::Tavily, Some("k2"))]
    {
        let base = Some(format!("http://{}", site.address).parse().unwrap());
        let key = key.map(|key: &str| key.into());
        let mut bench = Bench::new();
        let tool = WebSearch::new(Search { provider, base, key }).unwrap();
        bench.registry.add(Arc::new(tool)).unwrap();
        let found = bench.ok("web_search", json!({ "query": "a windlass", "count": 1 })).await;
        assert_eq!(found, "1. A title\n   https://a.test/\n   An excerpt\n");
        let tool = bench.registry.get("web_search").unwrap();
        assert_eq!(tool.category().to_string(), "Information");
        let assessed = bench.assessed("web_search", json!({ "query": "x" })).await;
        assert_eq!(assessed, "read MEDIUM: searches the web for \"x\"");
    }
    insta::assert_snapshot!(asked.lock().unwrap().join("\n"), @r#"
    searxng {"format": "json", "q": "a windlass"}
    brave k1 {"count": "1", "q": "a windlass"}
    tavily Bearer k2 {"max_results":1,"query":"a windlass"}
    "#);
}
