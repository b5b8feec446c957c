//! What a call would do, by what the agent has last seen of the page.

use url::Url;
use windlass_core::outcome::{Outcome, Recovery};
use windlass_core::policy::{Assessment, Class, Risk};
use windlass_core::text::one_line;

use super::page::Forms;
use super::saved::{BrowsingState, Element, Form};
use super::{Action, Arguments, Error, view};
use crate::web::Reach;

/// What a call may do with forms.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FormPermission {
    /// No form is sent.
    Denied,
    /// A form may be sent: this one, where it is known.
    Granted(Option<Form>),
}

impl FormPermission {
    pub const fn forms(&self) -> Forms {
        match self {
            Self::Denied => Forms::Stop,
            Self::Granted(_) => Forms::Send,
        }
    }
}

/// What a call would do.
#[derive(Debug)]
pub(super) struct CallEffect {
    pub assessment: Assessment,
    pub recovery: Recovery,
    /// The form that it would send.
    pub form: Option<Form>,
}

impl CallEffect {
    fn reads(reason: String) -> Self {
        let assessment = Assessment::of(Class::Read, reason).at_least(Risk::Medium);
        Self { assessment, recovery: Recovery::Rerun, form: None }
    }

    fn changes(reason: String) -> Self {
        let assessment = Assessment::of(Class::Build, reason);
        Self { assessment, recovery: Recovery::Unknown, form: None }
    }

    fn submits(reason: String, form: Option<Form>) -> Self {
        let assessment = Assessment::of(Class::Publish, reason);
        Self { assessment, recovery: Recovery::Unknown, form }
    }

    /// What the call may do with forms once it is decided that it runs.
    pub fn form_permission(&self) -> FormPermission {
        match self.assessment.class {
            Class::Publish => FormPermission::Granted(self.form.clone()),
            Class::Read
            | Class::Note
            | Class::Ledger
            | Class::Edit
            | Class::Delegate
            | Class::LocalCommand
            | Class::Test
            | Class::Build
            | Class::Production
            | Class::Destructive
            | Class::Opaque
            | Class::Catastrophic => FormPermission::Denied,
        }
    }
}

/// Judges a call by what the agent has last seen (ES-260, ES-261).
pub(super) fn judge(
    reach: &Reach,
    arguments: &Arguments,
    saved: &BrowsingState,
) -> Result<CallEffect, Outcome> {
    let needed = |value: &Option<String>, name: &str| {
        let text = value.clone().filter(|text| !text.is_empty());
        text.ok_or_else(|| {
            Outcome::failure(format!("`{}` needs `{name}`.", arguments.action.name()))
        })
    };
    let element = || -> Result<&Element, Outcome> {
        let reference = needed(&arguments.reference, "ref")?;
        let reference = reference.trim_matches(['[', ']']);
        saved.elements.get(reference).ok_or_else(|| {
            Outcome::failure(format!("{}.", Error::NoElement(one_line(reference, 40))))
        })
    };
    let page = saved.tabs.get(saved.active).map(|tab| one_line(&tab.url, 200)).unwrap_or_default();
    let named = |element: &Element| format!("{} {}", element.role, view::quoted(&element.name));
    Ok(match arguments.action {
        Action::Navigate => {
            let url = needed(&arguments.url, "url")?;
            let parsed = Url::parse(url.trim()).map_err(|_| {
                Outcome::failure(format!("`{}` is not an address.", one_line(&url, 200)))
            })?;
            reach.judge(&parsed).map_err(|error| Outcome::failure(format!("{error}.")))?;
            CallEffect::reads(format!("reads {} in the browser", one_line(&url, 200)))
        }
        Action::Click => match element()? {
            button if button.submits => submission(button, &page),
            element => CallEffect::changes(format!("clicks {} on {page}", named(element))),
        },
        Action::Submit => submission(element()?, &page),
        Action::Type => {
            if arguments.text.is_none() {
                needed(&arguments.text, "text")?;
            }
            CallEffect::changes(format!("types into {} on {page}", named(element()?)))
        }
        Action::Select => {
            needed(&arguments.text, "text")?;
            CallEffect::changes(format!("selects in {} on {page}", named(element()?)))
        }
        Action::Evaluate => {
            let text = needed(&arguments.text, "text")?;
            match submits_by_script(&text) {
                true => CallEffect::submits(
                    format!(
                        "runs a script on {page} that may submit a form: {}",
                        one_line(&text, 200)
                    ),
                    None,
                ),
                false => CallEffect::reads(format!("reads a value of {page}")),
            }
        }
        Action::Scroll | Action::Screenshot => {
            if arguments.reference.is_some() {
                element()?;
            }
            CallEffect::reads(format!("looks at {page}"))
        }
        Action::Wait
        | Action::Text
        | Action::Links
        | Action::Tabs
        | Action::Back
        | Action::Close => CallEffect::reads(format!("looks at {page}")),
    })
}

fn submission(element: &Element, page: &str) -> CallEffect {
    let reason = match &element.form {
        Some(form) => format!("submits a form to {} ({})", one_line(&form.url, 200), form.method),
        None => format!("submits {} on {page}", view::quoted(&element.name)),
    };
    CallEffect::submits(reason, element.form.clone())
}

/// Whether the text of an expression calls for a form to be sent. Whatever it misses cannot send one: such an expression
/// runs where V8 stops it before it changes anything.
fn submits_by_script(expression: &str) -> bool {
    let words = ["submit", "click", "dispatchevent"];
    let plain = expression.to_lowercase();
    words.iter().any(|word| plain.contains(word) && plain.contains('('))
}

#[cfg(test)]
mod tests;
