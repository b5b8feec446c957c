//! `web_fetch`: one page as text (ES-192).

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_core::layout::Own;
use windlass_core::outcome::{Evidence, Fact, Outcome};
use windlass_core::tool_name;

use super::client::{Fetched, Fetcher};
use super::page::{self, PageExtent};
use super::{Reach, Scratch, Web, WebTool};

/// Fetches a page.
#[derive(Clone, Debug)]
pub struct WebFetch {
    fetcher: Fetcher,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// The whole address, with http or https.
    #[schemars(length(min = 1))]
    url: String,
    /// Give the whole page instead of its main content. Default: false.
    full: Option<bool>,
}

impl WebFetch {
    /// A tool that fetches what these rules let it reach.
    pub fn new(reach: Reach) -> Web<Self> {
        Web(Self { fetcher: Fetcher::new(reach) })
    }
}

impl WebTool for WebFetch {
    type Arguments = Arguments;
    const NAME: &'static str = tool_name::WEB_FETCH;
    const DESCRIPTION: &'static str = include_str!("descriptions/web_fetch.md");

    fn reason(arguments: &Arguments) -> String {
        format!("reads {}", windlass_core::text::one_line(&arguments.url, 200))
    }

    async fn run(self, arguments: Arguments, scratch: Scratch) -> Outcome {
        let part = if arguments.full == Some(true) { PageExtent::Full } else { PageExtent::Main };
        let fetched = match self.fetcher.fetch(arguments.url.trim()).await {
            Ok(fetched) => fetched,
            Err(error) => return Outcome::failure(format!("{error}.")),
        };
        let evidence = Evidence::of_page(fetched.url.as_str(), "");
        let reading = tokio::task::spawn_blocking(move || {
            if page::is_pdf(&fetched) {
                return Ok(saved_pdf(&fetched, &scratch));
            }
            page::text(fetched, part)
        });
        match reading.await {
            Ok(Ok(text)) => Outcome::ok(text).with(Fact::Evidence(evidence)),
            Ok(Err(why)) => Outcome::failure(format!("{why}.")),
            Err(_) => Outcome::failure("the page could not be read."),
        }
    }
}

/// Saves a PDF for the agent's own tools: reading one is a job for a program in the sandbox, because such a
/// file may be made to harm its reader.
fn saved_pdf(fetched: &Fetched, scratch: &Scratch) -> String {
    let size = fetched.bytes.len();
    if fetched.cut {
        return format!(
            "PDF: not shown. It has more than {size} bytes and is not saved. Download it with `curl` and \
             read it with `pdftotext FILE -`."
        );
    }
    let layout = scratch.workspace.layout();
    let path = format!("{}/web-fetch-{}.pdf", layout.path(Own::Scratch), scratch.call);
    match scratch.workspace.keep(scratch.call, &path, &mut fetched.bytes.as_slice()) {
        Ok(()) => {
            let path = layout.in_full(&path);
            format!(
                "PDF: not shown ({size} bytes). It is saved as {path}; `pdftotext {path} -` gives its \
                 text where that program is installed."
            )
        }
        Err(error) => format!("PDF: not shown ({size} bytes). It could not be saved: {error}."),
    }
}
