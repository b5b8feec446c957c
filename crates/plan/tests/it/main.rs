//! Plans through the crate's own seam: texts in, plans and problems out.

mod agents;
mod manifest;
mod prompts;
mod schema;
mod scope;
mod snapshots;
mod templates;

use windlass_plan::{Document, Plan, Problems, check, read_plan};

/// Reads and checks a manifest.
fn read(text: &str) -> Result<(Plan, Document), Problems> {
    let document = Document::parse("plan.json", text)?;
    let plan = read_plan(&document, "demo")?;
    check(&plan, &document)?;
    Ok((plan, document))
}

/// What is wrong with a manifest, a line each.
fn problems(text: &str) -> String {
    match read(text) {
        Ok(_) => "nothing".to_owned(),
        Err(problems) => problems.to_string(),
    }
}
