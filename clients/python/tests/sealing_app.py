"""An app with a codec, for workers of the command line."""

from __future__ import annotations

import tenure
from toy_codec import NEW, OLD, Toy

app = tenure.App(codec=Toy(NEW, OLD))


@app.job("mail")
def send(ctx: tenure.Context, to: str) -> dict[str, str]:
    ctx.progress({"sent to": to})
    return {"sent": to}


@app.job("mail")
async def asend(ctx: tenure.Context, to: str) -> dict[str, str]:
    ctx.progress({"sent to": to})
    return {"sent": to}
