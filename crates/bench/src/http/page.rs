//! The first page in a real browser: what is fetched for it, and how soon it is drawn.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use windlass_testkit::Browser;

use super::Site;
use crate::Effort;
use crate::figures::{Figure, Unit, ms, quantile};

/// Bytes that a browser gets before it draws the first page, as they are sent.
pub async fn size(site: &Site) -> Result<Figure> {
    let page = site.compressed("/").await?;
    let text = String::from_utf8(site.get(&mut site.connect().await?, "/").await?)?;
    let named = text.split('"').filter(|word| word.starts_with("/assets/"));
    let assets: Vec<&str> = named.filter(|word| !word.contains("icon")).collect();
    ensure!(assets.len() >= 2, "the page names no style sheet and no script");
    let mut all = page;
    for asset in &assets {
        all += site.compressed(asset).await?;
    }
    let detail = format!("the page {page} bytes, and {} files", assets.len());
    let kilobytes = all as f64 / 1024.0;
    Ok(Figure::new("first page, compressed", kilobytes, Unit::Kilobytes).at_most(30.0).from(detail))
}

/// From the end of the page's response to the first text on the screen, in Chromium and without a cache: the style sheet
/// is fetched in that time too.
pub async fn drawn(site: &Site, effort: Effort) -> Result<Figure> {
    let program = std::env::var("WINDLASS_TEST_CHROMIUM")
        .context("WINDLASS_TEST_CHROMIUM names no browser; scripts/bench sets it")?;
    let visits = match effort {
        Effort::Quick => 5,
        Effort::Full => 20,
    };
    let (host, token) = (site.host.clone(), site.token.clone());
    let visiting = tokio::task::spawn_blocking(move || visit(&program, &host, &token, visits));
    let times = visiting.await.context("the browser")?;
    let (middle, worst) = (quantile(&times, 0.5), quantile(&times, 1.0));
    let detail = format!("Chromium, {visits} visits without a cache; the slowest {}", ms(worst));
    let name = "first page: drawn after its response, median";
    Ok(Figure::new(name, middle.as_secs_f64() * 1e3, Unit::Milliseconds)
        .at_most(100.0)
        .from(detail))
}

/// Opens the first page again and again, as somebody who has never seen it.
fn visit(program: &str, host: &str, token: &str, visits: usize) -> Vec<Duration> {
    let browser = Browser::start(program);
    let context = browser.context();
    let page = context.page();
    let signed_in =
        serde_json::json!({ "headers": { "Authorization": format!("Bearer {token}") } });
    page.call("Network.setExtraHTTPHeaders", signed_in);
    page.call("Network.setCacheDisabled", serde_json::json!({ "cacheDisabled": true }));
    let took = |_| {
        page.go(&format!("http://{host}/"));
        page.until("document.querySelector('#composer')");
        let painted = "performance.getEntriesByName('first-contentful-paint')[0]";
        page.until(painted);
        let answered = "performance.getEntriesByType('navigation')[0].responseEnd";
        let milliseconds = page.eval(&format!("{painted}.startTime - {answered}")).as_f64();
        Duration::from_secs_f64(milliseconds.unwrap_or_default().max(0.0) / 1e3)
    };
    // The first visit warms up the browser itself.
    (0..=visits).map(took).skip(1).collect()
}
