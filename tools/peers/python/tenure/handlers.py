import gauge
import tenure

app = tenure.App()
#: The same as coroutines.
coroutines = tenure.App()


@app.job("bench")
def work(data: dict) -> None:
    gauge.handle(data)


@coroutines.job("bench", kind="work")
async def work_async(data: dict) -> None:
    await gauge.handle_async(data)
