//! The contents in the rows and events of a step, each with its place. Every field of rows is named here, so that a new one
//! does not compile before somebody has decided whether it is sealed.

use std::sync::Arc;

use tenure_core::events::Happened;
use tenure_core::names::Namespace;
use tenure_core::secret::Json;
use tenure_machine::Seq;
use tenure_machine::rows::{ContentPatch, JobChange, JobContent, JobEnd, Kind, Rows};

use super::place::ContentPlace;

/// A content, to be changed where it is.
pub(super) enum ContentMut<'a> {
    Json(&'a mut Json),
    Text(&'a mut String),
}

/// Calls `does` with each content of these rows.
pub(super) fn each(rows: &mut Rows, does: &mut dyn FnMut(ContentPlace<'_>, ContentMut<'_>)) {
    let Rows { jobs, errors, other, childless: _, data } = rows;
    for (seq, change) in jobs {
        each_of_job(*seq, change, does);
    }
    for (seq, error) in errors {
        let place = ContentPlace::past(*seq, error);
        does(place, ContentMut::Text(&mut error.error));
    }
    for (key, value) in other {
        if let (true, Some(text)) = (is_content(key.kind), value) {
            does(ContentPlace::Row(key), ContentMut::Text(text));
        }
    }
    for (key, data) in data {
        if let Some(data) = data {
            does(ContentPlace::Data(key), ContentMut::Json(data));
        }
    }
}

fn each_of_job(
    seq: Seq,
    change: &mut JobChange,
    does: &mut dyn FnMut(ContentPlace<'_>, ContentMut<'_>),
) {
    let JobChange {
        new,
        queue: _,
        flow: _,
        patch,
        state: _,
        shape: _,
        life: _,
        end,
        kept: _,
        revived: _,
        error,
        progress,
        deleted: _,
    } = change;
    if let Some(new) = new {
        let (_, _, JobContent { kind: _, payload, labels: _, traceparent: _ }) = Arc::make_mut(new);
        does(ContentPlace::Payload(seq), ContentMut::Json(payload));
    }
    if let Some(patch) = patch {
        let ContentPatch { kind: _, payload, labels: _, traceparent: _ } = &mut **patch;
        if let Some(payload) = payload {
            does(ContentPlace::Payload(seq), ContentMut::Json(payload));
        }
    }
    if let Some(JobEnd {
        namespace: _,
        id: _,
        shape: _,
        until: _,
        bytes: _,
        result: Some(result),
    }) = end
    {
        does(ContentPlace::Result(seq), ContentMut::Json(result));
    }
    if let Some(Some(error)) = error {
        does(ContentPlace::Error(seq), ContentMut::Text(error));
    }
    if let Some(Some(progress)) = progress {
        does(ContentPlace::Progress(seq), ContentMut::Json(progress));
    }
}

/// Calls `does` with each content of these events.
pub(super) fn each_event(
    namespace: &Namespace,
    events: &mut [Happened],
    does: &mut dyn FnMut(ContentPlace<'_>, ContentMut<'_>),
) {
    for happened in events {
        let Some(mut error) = happened.about.error.take() else { continue };
        does(ContentPlace::event(namespace, happened), ContentMut::Text(&mut error));
        happened.about.error = Some(error);
    }
}

/// True if rows of this kind hold contents. They are sealed whole.
pub(super) const fn is_content(kind: Kind) -> bool {
    match kind {
        // The payloads of jobs to come.
        Kind::Schedule | Kind::ScheduledJob => true,
        Kind::Meta
        | Kind::Queue
        | Kind::Turn
        | Kind::LimitSetting
        | Kind::Limit
        | Kind::Pool
        | Kind::Resource
        | Kind::SyncedSet
        | Kind::Edge
        | Kind::Followed
        | Kind::Leaving
        | Kind::Flow
        | Kind::Lease
        | Kind::Key
        | Kind::Request
        | Kind::Replacing
        | Kind::Stub
        | Kind::SealKey => false,
    }
}
