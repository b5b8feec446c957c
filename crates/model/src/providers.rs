//! The providers that we know by name, as data: a provider that speaks a known wire is one entry here. The
//! configuration of a provider wins over its entry.

use windlass_core::reasoning::Effort;
use windlass_core::string_enum;

string_enum! {
    /// The protocols we speak.
    Wire ("wire") {
        /// Chat Completions, as LiteLLM and most others serve it.
        Chat = "chat",
        /// The Responses API of OpenAI.
        Responses = "responses",
        /// The Messages API of Anthropic.
        Anthropic = "anthropic",
    }
}

string_enum! {
    /// What becomes of a model's reasoning in later requests.
    ReasoningUse ("reasoning") {
        /// The models do not reason; `effort` is refused.
        Off = "off",
        /// It is read and shown, and not sent back.
        Drop = "drop",
        /// It is sent back as it came.
        Return = "return",
        /// As `return`, with an empty `reasoning_content` if the reply has no reasoning: the server requires the field.
        Require = "require",
        /// As `return`, with a stand-in for a call's missing signature: the server insists on one.
        Signatures = "signatures",
    }
}

/// How a request says who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// As its wire does it: `authorization: Bearer`, or `x-api-key`.
    ByWire,
    /// In the header `api-key`.
    ApiKey,
}

/// How a Chat Completions request says how much a model should think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffortForm {
    /// A field of its own: `"reasoning_effort": "high"`.
    Field,
    /// `"reasoning": {"effort": "high"}`.
    Object,
    /// `"reasoning_effort": "high"`, and `"thinking": {"type": "disabled"}` for none.
    Thinking,
}

/// The words that a provider has for efforts; an effort that is not there is refused.
pub type Efforts = &'static [(Effort, &'static str)];

/// A provider that is known by name.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownProvider {
    /// The part of a model's name before the slash.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// What it speaks at its own base.
    pub wire: Wire,
    /// What is assumed to be spoken at any other base.
    pub wire_elsewhere: Wire,
    /// Where it is, unless it is configured; `None` where everybody runs their own.
    pub base: Option<&'static str>,
    /// The environment variable with its base.
    pub base_env: &'static str,
    /// The environment variable with its key.
    pub key_env: &'static str,
    /// The model that is asked where none is named.
    pub default_model: Option<&'static str>,
    pub auth: Auth,
    /// What is appended to the base for Chat Completions, with `{model}` in place of the model's name.
    pub chat_path: &'static str,
    /// Parameters of every request's URL.
    pub query: &'static [(&'static str, &'static str)],
    pub reasoning: ReasoningUse,
    pub effort_form: EffortForm,
    pub efforts: Efforts,
}

/// What most of them have in common.
const USUAL: KnownProvider = KnownProvider {
    name: "",
    title: "",
    wire: Wire::Chat,
    wire_elsewhere: Wire::Chat,
    base: None,
    base_env: "",
    key_env: "",
    default_model: None,
    auth: Auth::ByWire,
    chat_path: "/chat/completions",
    query: &[],
    reasoning: ReasoningUse::Drop,
    effort_form: EffortForm::Field,
    efforts: PLAIN,
};

const PLAIN: Efforts = &[
    (Effort::None, "none"),
    (Effort::Minimal, "minimal"),
    (Effort::Low, "low"),
    (Effort::Medium, "medium"),
    (Effort::High, "high"),
    (Effort::Max, "high"),
];
const OPENAI: Efforts = &[
    (Effort::None, "none"),
    (Effort::Minimal, "minimal"),
    (Effort::Low, "low"),
    (Effort::Medium, "medium"),
    (Effort::High, "high"),
    (Effort::Max, "xhigh"),
];
/// `none` switches thinking off and is never sent.
const ANTHROPIC: Efforts = &[
    (Effort::None, "none"),
    (Effort::Minimal, "low"),
    (Effort::Low, "low"),
    (Effort::Medium, "medium"),
    (Effort::High, "high"),
    (Effort::Max, "max"),
];
const DEEPSEEK: Efforts = &[
    (Effort::None, "none"),
    (Effort::Minimal, "low"),
    (Effort::Low, "low"),
    (Effort::Medium, "high"),
    (Effort::High, "high"),
    (Effort::Max, "max"),
];
const THREE_LEVELS: Efforts = &[
    (Effort::None, "none"),
    (Effort::Minimal, "low"),
    (Effort::Low, "low"),
    (Effort::Medium, "medium"),
    (Effort::High, "high"),
    (Effort::Max, "high"),
];

/// All of them. Where several are configured and no model is named, the first is asked; it also serves the
/// models whose names have no provider.
pub const PROVIDERS: [KnownProvider; 13] = [
    KnownProvider {
        name: "litellm",
        title: "LiteLLM",
        base_env: "LITELLM_API_BASE",
        key_env: "LITELLM_API_KEY",
        default_model: Some("gpt-4o"),
        reasoning: ReasoningUse::Return,
        efforts: OPENAI,
        ..USUAL
    },
    KnownProvider {
        name: "openai",
        title: "OpenAI",
        wire: Wire::Responses,
        base: Some("https://api.openai.com/v1"),
        base_env: "OPENAI_BASE_URL",
        key_env: "OPENAI_API_KEY",
        default_model: Some("gpt-5.5"),
        reasoning: ReasoningUse::Return,
        efforts: OPENAI,
        ..USUAL
    },
    KnownProvider {
        name: "anthropic",
        title: "Anthropic",
        wire: Wire::Anthropic,
        wire_elsewhere: Wire::Anthropic,
        base: Some("https://api.anthropic.com"),
        base_env: "ANTHROPIC_BASE_URL",
        key_env: "ANTHROPIC_API_KEY",
        default_model: Some("claude-sonnet-5"),
        reasoning: ReasoningUse::Return,
        efforts: ANTHROPIC,
        ..USUAL
    },
    KnownProvider {
        name: "openrouter",
        title: "OpenRouter",
        base: Some("https://openrouter.ai/api/v1"),
        base_env: "OPENROUTER_BASE_URL",
        key_env: "OPENROUTER_API_KEY",
        reasoning: ReasoningUse::Return,
        effort_form: EffortForm::Object,
        efforts: OPENAI,
        ..USUAL
    },
    KnownProvider {
        name: "ollama",
        title: "Ollama",
        base: Some("http://localhost:11434/v1"),
        base_env: "OLLAMA_BASE_URL",
        key_env: "OLLAMA_API_KEY",
        efforts: THREE_LEVELS,
        ..USUAL
    },
    KnownProvider {
        name: "vllm",
        title: "vLLM",
        base: Some("http://localhost:8000/v1"),
        base_env: "VLLM_BASE_URL",
        key_env: "VLLM_API_KEY",
        reasoning: ReasoningUse::Return,
        efforts: THREE_LEVELS,
        ..USUAL
    },
    KnownProvider {
        name: "lmstudio",
        title: "LM Studio",
        base: Some("http://localhost:1234/v1"),
        base_env: "LMSTUDIO_BASE_URL",
        key_env: "LMSTUDIO_API_KEY",
        efforts: THREE_LEVELS,
        ..USUAL
    },
    KnownProvider {
        name: "deepseek",
        title: "DeepSeek",
        base: Some("https://api.deepseek.com/v1"),
        base_env: "DEEPSEEK_BASE_URL",
        key_env: "DEEPSEEK_API_KEY",
        reasoning: ReasoningUse::Require,
        effort_form: EffortForm::Thinking,
        efforts: DEEPSEEK,
        ..USUAL
    },
    KnownProvider {
        name: "gemini",
        title: "Gemini",
        base: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
        base_env: "GEMINI_BASE_URL",
        key_env: "GEMINI_API_KEY",
        reasoning: ReasoningUse::Signatures,
        ..USUAL
    },
    KnownProvider {
        name: "mistral",
        title: "Mistral",
        base: Some("https://api.mistral.ai/v1"),
        base_env: "MISTRAL_BASE_URL",
        key_env: "MISTRAL_API_KEY",
        efforts: &[(Effort::None, "none"), (Effort::High, "high")],
        ..USUAL
    },
    KnownProvider {
        name: "groq",
        title: "Groq",
        base: Some("https://api.groq.com/openai/v1"),
        base_env: "GROQ_BASE_URL",
        key_env: "GROQ_API_KEY",
        efforts: THREE_LEVELS,
        ..USUAL
    },
    KnownProvider {
        name: "xai",
        title: "xAI",
        base: Some("https://api.x.ai/v1"),
        base_env: "XAI_BASE_URL",
        key_env: "XAI_API_KEY",
        efforts: &[
            (Effort::Low, "low"),
            (Effort::Medium, "medium"),
            (Effort::High, "high"),
            (Effort::Max, "high"),
        ],
        ..USUAL
    },
    KnownProvider {
        name: "azure",
        title: "Azure OpenAI",
        base_env: "AZURE_OPENAI_ENDPOINT",
        key_env: "AZURE_OPENAI_API_KEY",
        auth: Auth::ApiKey,
        chat_path: "/openai/deployments/{model}/chat/completions",
        query: &[("api-version", "2024-10-21")],
        efforts: OPENAI,
        ..USUAL
    },
];

impl KnownProvider {
    /// The provider of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }

    /// What it speaks at a base.
    pub fn wire_at(&self, base: &str) -> Wire {
        let same = |own: &str| own.trim_end_matches('/') == base.trim_end_matches('/');
        if self.base.is_some_and(same) { self.wire } else { self.wire_elsewhere }
    }
}

impl Wire {
    /// The words for efforts of a provider that is not known by name.
    pub const fn efforts(self) -> Efforts {
        match self {
            Self::Chat => PLAIN,
            Self::Responses => OPENAI,
            Self::Anthropic => ANTHROPIC,
        }
    }

    /// What becomes of reasoning, for a provider that is not known by name.
    pub const fn reasoning(self) -> ReasoningUse {
        match self {
            // Some servers refuse a whole conversation for a field that they do not know.
            Self::Chat => ReasoningUse::Drop,
            Self::Responses | Self::Anthropic => ReasoningUse::Return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_has_names_of_its_own() {
        let fields: [fn(&KnownProvider) -> &'static str; 3] =
            [|known| known.name, |known| known.base_env, |known| known.key_env];
        for of in fields {
            let mut names: Vec<_> = PROVIDERS.iter().map(of).collect();
            names.sort_unstable();
            names.dedup();
            assert!(names.len() == PROVIDERS.len() && names.iter().all(|name| !name.is_empty()));
        }
    }

    #[test]
    fn openai_speaks_responses_only_at_its_own_base() {
        let openai = KnownProvider::find("openai").unwrap();
        assert_eq!(openai.wire_at("https://api.openai.com/v1/"), Wire::Responses);
        assert_eq!(openai.wire_at("https://proxy.example/v1"), Wire::Chat);
        let anthropic = KnownProvider::find("anthropic").unwrap();
        assert_eq!(anthropic.wire_at("http://localhost:4000"), Wire::Anthropic);
    }
}
