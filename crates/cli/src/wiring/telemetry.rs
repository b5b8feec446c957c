//! What the program reports about itself: log lines on stderr, spans to an OpenTelemetry collector.
//!
//! Both are off unless the environment asks for them: `RUST_LOG`, `OTEL_EXPORTER_OTLP_ENDPOINT` (ES-323).

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{Array, Value};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData};
use tracing::Metadata;
use tracing_subscriber::filter::{self, FilterExt as _};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry};
use windlass_agent::spans;
use windlass_term::TerminalStyle;

use crate::show;

/// Where spans go; the last of them leave when it is dropped.
pub struct Telemetry {
    provider: Option<SdkTracerProvider>,
    refusal: Refusal,
}

/// Why the collector did not take spans, the first time. The SDK tells nobody.
type Refusal = Arc<OnceLock<String>>;

impl Telemetry {
    /// Starts what the environment asks for.
    pub fn begin(log_format: &str) -> Self {
        let refusal = Refusal::default();
        let provider = provider(&refusal);
        let spans = provider.as_ref().map(|provider| {
            tracing_opentelemetry::layer()
                .with_tracer(provider.tracer("windlass"))
                .with_location(false)
                .with_threads(false)
                .with_target(false)
                .with_tracked_inactivity(false)
                .with_filter(filter::filter_fn(is_span))
        });
        let lines = wanted_lines().map(|filter| {
            let ansi = TerminalStyle::detect().notes.on;
            let lines = tracing_subscriber::fmt::layer()
                .with_writer(|| show::keys::LogLines)
                .with_ansi(ansi);
            let lines = match log_format {
                "json" => lines.json().boxed(),
                _ => lines.boxed(),
            };
            lines.with_filter(filter.and(filter::filter_fn(|meta| !is_span(meta))))
        });
        if spans.is_some() || lines.is_some() {
            // A second subscriber in one process (a test) is not an error.
            let _ = Registry::default().with(lines).with(spans).try_init();
        }
        Self { provider, refusal }
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        let Some(provider) = &self.provider else { return };
        let end = provider.shutdown().map_err(|error| error.to_string());
        if let Some(error) = end.err().or_else(|| self.refusal.get().cloned()) {
            show::note(&format!("warning: not all spans reached the collector: {error}"));
        }
    }
}

/// Which log lines the environment asks for. What cannot be read asks for none, and is said.
fn wanted_lines() -> Option<EnvFilter> {
    let wanted = std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|wanted| !wanted.is_empty())?;
    let filter = EnvFilter::try_new(&wanted);
    if let Err(error) = &filter {
        show::note(&format!("warning: no log lines, `RUST_LOG` cannot be read: {error}"));
    }
    filter.ok()
}

/// Spans are for the collector; log lines stay as they are.
fn is_span(meta: &Metadata<'_>) -> bool {
    meta.target() == spans::TARGET
}

fn provider(refusal: &Refusal) -> Option<SdkTracerProvider> {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let wanted = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
    if !wanted.into_iter().any(set) {
        return None;
    }
    // One provider for the whole process; the model's clients bring the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary).build();
    match exporter {
        Ok(exporter) => {
            let mut about = Resource::builder();
            if !set("OTEL_SERVICE_NAME") {
                about = about.with_service_name("windlass");
            }
            let exporter = ByConvention { exporter, refusal: Arc::clone(refusal) };
            let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
            Some(provider.with_resource(about.build()).build())
        }
        Err(error) => {
            show::note(&format!("warning: no spans are sent to the collector: {error}"));
            None
        }
    }
}

/// Sends spans with attributes of the kinds that the conventions want: a field of a span is one text, and why a
/// model stopped is a list.
#[derive(Debug)]
struct ByConvention {
    exporter: SpanExporter,
    refusal: Refusal,
}

impl opentelemetry_sdk::trace::SpanExporter for ByConvention {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        let attributes = batch.iter_mut().flat_map(|span| &mut span.attributes);
        for attribute in attributes.filter(|one| one.key.as_str() == spans::FINISH_REASONS) {
            let reason = attribute.value.as_str().into_owned();
            attribute.value = Value::Array(Array::String(vec![reason.into()]));
        }
        let sent = self.exporter.export(batch).await;
        if let Err(error) = &sent {
            // Only the first is kept.
            let _ = self.refusal.set(error.to_string());
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
