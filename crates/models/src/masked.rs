//! Masks secrets in everything that a model returns, so that a provider cannot leak a key by repeating it.

use futures_util::{StreamExt, stream};
use lango_core::{
    BoxStream, Call, Model, ModelError, ModelEvent, ModelInfo, ModelReply, ModelRequest,
    OpaqueData, StopReason,
};
use lango_secrets::{MaskTextStream, Masks};
use std::sync::Arc;

/// Wraps a model and masks secrets in its text, calls and errors, even if a secret is split over several chunks of the
/// stream.
pub struct MaskedModel {
    inner: Arc<dyn Model>,
    masks: Masks,
}

impl MaskedModel {
    pub fn new(inner: Arc<dyn Model>, masks: Masks) -> Self {
        Self { inner, masks }
    }

    fn mask_reply(&self, reply: &mut ModelReply) {
        let masks = &self.masks;
        masks.mask_string(&mut reply.text);
        for call in &mut reply.calls {
            self.mask_call(call);
        }
        if let StopReason::Filtered { detail } = &mut reply.stop {
            *detail = masks.mask_text(detail).into();
        }
        if let Some(opaque) = &mut reply.opaque {
            self.mask_opaque(opaque);
        }
    }

    fn mask_call(&self, call: &mut Call) {
        call.name = self.masks.mask_text(&call.name).into();
        call.id = self.masks.mask_text(call.id.as_str()).as_ref().into();
        if let Some(masked) = self.masks.mask_json_text(&call.arguments) {
            call.arguments = masked.into();
        }
    }

    /// Masks the reasoning, which may repeat a secret too. A provider that signed it may then refuse it.
    fn mask_opaque(&self, opaque: &mut OpaqueData) {
        let mut data = (*opaque.data).clone();
        if self.masks.mask_json(&mut data) {
            opaque.data = Arc::new(data);
        }
    }

    fn mask_error(&self, mut error: ModelError) -> ModelError {
        if let Some(detail) = error.fault.detail_mut() {
            self.masks.mask_string(detail);
        }
        error
    }

    /// Masks an event. Text that was buffered to detect split values is emitted before the reply.
    fn mask_event(
        &self,
        text: &mut Option<MaskTextStream>,
        event: Result<ModelEvent, ModelError>,
    ) -> Vec<Result<ModelEvent, ModelError>> {
        let event = match event {
            Err(error) => return vec![Err(self.mask_error(error))],
            Ok(event) => event,
        };
        match event {
            ModelEvent::Text(piece) => {
                // Not created earlier, because sending the request adds the key to the masks.
                let stream = text.get_or_insert_with(|| self.masks.text_stream());
                let piece = stream.push(&piece);
                let is_empty = piece.is_empty();
                let piece = (!is_empty).then_some(Ok(ModelEvent::Text(piece)));
                piece.into_iter().collect()
            }
            progress @ ModelEvent::Progress { .. } => vec![Ok(progress)],
            ModelEvent::Retrying { mut reason } => {
                *text = None;
                self.masks.mask_string(&mut reason);
                vec![Ok(ModelEvent::Retrying { reason })]
            }
            ModelEvent::Reply(mut reply) => {
                let rest = text.take().map(|mut stream| stream.finish());
                let rest = rest.filter(|rest| !rest.is_empty());
                self.mask_reply(&mut reply);
                let rest = rest.map(|rest| Ok(ModelEvent::Text(rest)));
                rest.into_iter()
                    .chain([Ok(ModelEvent::Reply(reply))])
                    .collect()
            }
        }
    }
}

impl Model for MaskedModel {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn info(&self) -> ModelInfo {
        self.inner.info()
    }

    fn call<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<ModelEvent, ModelError>> {
        let mut text = None;
        self.inner
            .call(request)
            .flat_map(move |event| stream::iter(self.mask_event(&mut text, event)))
            .boxed()
    }
}
