import gauge


def work(data):
    gauge.handle(data)
