//! Values of a client with a codec: sealed before they are sent, opened when they are read.
//!
//! `null` is sent as it is. A value that is shown and cannot be opened stays sealed; one that is worked on is an error.

use std::sync::Arc;

use data_encoding::BASE64;
use tenure_core::flow::ParentView;
use tenure_core::job::{JobView, NewJob, ResultView};
use tenure_core::schedule::ScheduledJob;
use tenure_core::secret::Json;
use tenure_engine_api::CallError;

use crate::client::Client;
use crate::codec::{Codec, CodecError, CodecFault, Sealed, ValuePart, ValuePlace, not_sent};

impl Client {
    /// The same client with a codec, which seals payloads, results and progress and opens them: the server reads none
    /// of these. Ids, queues, kinds, labels, groups, unique keys and errors stay clear.
    ///
    /// It is used by pushes, schedules, [`StoredJob`](crate::StoredJob) and workers. [`Client::run`],
    /// [`Client::lease`] and [`Client::settle`] send and return what they are given: see [`Client::sealed`].
    pub fn codec(mut self, codec: impl Codec) -> Self {
        self.codec = Some(Arc::new(codec));
        self
    }

    /// Seals a value; returns it as it is if there is no codec, or one that is read only.
    ///
    /// ```
    /// # tenure::testing::example(async |client| {
    /// use tenure::{Json, ValuePart, ValuePlace};
    ///
    /// let place = ValuePlace::new(ValuePart::Result, "mail", "send");
    /// let sent = client.sealed(Json::from("sent to ann"), &place)?;
    /// assert_eq!(client.unsealed(sent, place.part)?, Json::from("sent to ann"));
    ///
    /// let stored = r#"{"$sealed": "YW5u", "codec": "ours", "queue": "mail", "kind": "send"}"#;
    /// let no = client.unsealed(serde_json::from_str(stored)?, ValuePart::Result).unwrap_err();
    /// assert_eq!((no.code(), ValuePart::Result.as_str()), ("no_codec", "result"));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// The codec failed.
    pub fn sealed(&self, value: Json, place: &ValuePlace) -> Result<Json, CodecError> {
        let Some(codec) = self.codec.as_deref().filter(|codec| !codec.read_only()) else {
            return Ok(value);
        };
        if value.is_null() {
            return Ok(value);
        }
        let failed = |why: String| CodecError::Failed {
            codec: codec.name().to_owned(),
            failed: format!("did not seal the {}: {why}", place.part),
        };
        let made = codec.encode(value.text().as_bytes(), place);
        let sealed = Sealed {
            bytes: BASE64.encode(&made.map_err(|why| failed(why.to_string()))?),
            codec: codec.name().to_owned(),
            queue: place.queue.clone(),
            kind: place.kind.clone(),
        };
        Json::of(&sealed).map_err(|why| failed(why.to_string()))
    }

    /// A value as it was before it was sealed; one that is not sealed is returned as it is.
    ///
    /// # Errors
    /// It is sealed, and this client cannot open it.
    pub fn unsealed(&self, value: Json, part: ValuePart) -> Result<Json, CodecError> {
        Ok(self.open_sealed(&value, part, None)?.unwrap_or(value))
    }

    /// A sealed value as it was before; `None` for one that is not sealed. A value of another queue and kind than
    /// those of the `job` is refused.
    fn open_sealed(
        &self,
        value: &Json,
        part: ValuePart,
        job: Option<(&str, &str)>,
    ) -> Result<Option<Json>, CodecError> {
        let Some(Sealed { bytes, codec: name, queue, kind }) = Sealed::of(value) else {
            return Ok(None);
        };
        let Some(codec) = self.codec.as_deref() else {
            return Err(CodecError::NoCodec { part, codec: name });
        };
        if codec.name() != name {
            let has = codec.name().to_owned();
            return Err(CodecError::WrongCodec { part, codec: name, has });
        }
        let failed = |failed: String| CodecError::Failed { codec: name.clone(), failed };
        if let Some((own_queue, own_kind)) = job.filter(|own| *own != (&*queue, &*kind)) {
            return Err(failed(format!(
                "sealed the {part} for the kind {kind:?} in queue {queue:?}, and not for {own_kind:?} in {own_queue:?}; \
                 push the job again by a client that has the codec"
            )));
        }
        let place = ValuePlace { part, queue, kind };
        let clear = BASE64
            .decode(bytes.as_bytes())
            .map_err(CodecFault::from)
            .and_then(|sealed| codec.decode(&sealed, &place))
            .and_then(|clear| Ok(String::from_utf8(clear)?));
        let advice = "look whether it has the key by which the value was sealed";
        let clear =
            clear.map_err(|why| failed(format!("did not open the {part}: {why}; {advice}")))?;
        let json = Json::parse(&clear);
        let no_json = || failed(format!("did not open the {part}: it is not JSON; {advice}"));
        json.ok_or_else(no_json).map(Some)
    }

    /// Opens a value that is shown and not worked on; one that cannot be opened stays as it is.
    fn shown(&self, value: &mut Option<Json>, part: ValuePart) {
        if self.codec.is_some()
            && let Some(json) = value
            && let Ok(Some(clear)) = self.open_sealed(json, part, None)
        {
            *json = clear;
        }
    }

    /// Opens the values of a job that is shown.
    pub(crate) fn shown_job(&self, mut job: JobView) -> JobView {
        self.shown(&mut job.payload, ValuePart::Payload);
        self.shown(&mut job.result, ValuePart::Result);
        self.shown(&mut job.progress, ValuePart::Progress);
        job
    }

    /// The same for an end that is shown.
    pub(crate) fn shown_result(&self, mut end: ResultView) -> ResultView {
        self.shown(&mut end.result, ValuePart::Result);
        self.shown(&mut end.progress, ValuePart::Progress);
        end
    }

    /// The same for the parents of a job.
    pub(crate) fn shown_parents(&self, parents: &mut [ParentView]) {
        for parent in parents {
            if let ParentView::Job(job) = parent {
                self.shown(&mut job.result, ValuePart::Result);
            }
        }
    }

    /// Opens the values of a job that is to run. Its progress is a help, and no reason to fail.
    pub(crate) fn open_for_a_run(&self, job: &mut JobView) -> Result<(), CodecError> {
        self.shown(&mut job.progress, ValuePart::Progress);
        if let Some(payload) = &mut job.payload {
            let own = (job.queue.as_str(), &*job.kind);
            if let Some(clear) = self.open_sealed(payload, ValuePart::Payload, Some(own))? {
                *payload = clear;
            }
        }
        Ok(())
    }

    /// Seals the payload of a job that is to be pushed.
    pub(crate) fn seal_new(&self, job: &mut NewJob) -> Result<(), CodecError> {
        if self.codec.is_some() {
            let place = ValuePlace::new(ValuePart::Payload, job.queue.as_str(), &*job.kind);
            job.payload = self.sealed(std::mem::take(&mut job.payload), &place)?;
        }
        Ok(())
    }

    /// Seals the payload of the jobs of a schedule.
    pub(crate) fn seal_scheduled(&self, job: &mut ScheduledJob) -> Result<(), CallError> {
        if self.codec.is_some()
            && let Some(payload) = &mut job.payload
        {
            let place = ValuePlace::new(ValuePart::Payload, job.queue.as_str(), &*job.kind);
            *payload = self.sealed(payload.clone(), &place).map_err(not_sent)?;
        }
        Ok(())
    }

    /// Says what to do where the server could not fill needs in from a payload, since that is sealed.
    pub(crate) fn advised(&self, mut error: CallError) -> CallError {
        if self.codec.is_some()
            && let CallError::Refused(no) = &mut error
            && no.pointer.as_deref().is_some_and(|place| place.contains("/payload/"))
        {
            no.hint = "the payload is sealed, so the server cannot fill {payload.…} of the queue's needs in; give the \
                       job needs of its own"
                .to_owned();
        }
        error
    }
}
