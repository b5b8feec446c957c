"""Runs a task with a client that was generated from the OpenAPI text."""

import os
import sys
import time

from windlass_client import AuthenticatedClient
from windlass_client.api.tasks import get_task, get_task_result, submit_task
from windlass_client.models import NewTask

client = AuthenticatedClient(base_url=sys.argv[1], token=os.environ["WINDLASS_TOKEN"])
with client as client:
    submitted = submit_task.sync(client=client, body=NewTask(goal="say something"), idempotency_key="generated")
    task_id = submitted.task_id
    for _ in range(600):
        task = get_task.sync(task_id=task_id, client=client)
        if task.status in ("done", "failed", "cancelled"):
            break
        time.sleep(0.05)
    answer = get_task_result.sync(task_id=task_id, client=client)
    print(f"{task.status}: {answer.to_dict()['final_message']}")
