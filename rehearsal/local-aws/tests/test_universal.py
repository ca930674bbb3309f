"""The Input of a universal target."""

import json
import unittest

from localaws import universal
from localaws.seam import Refused

RUN_TASK = "arn:aws:scheduler:::aws-sdk:ecs:runTask"


def parse(value, arn=RUN_TASK):
    """What a target with this Input would call."""
    return universal.parse({"Arn": arn, "Input": value if isinstance(value, str) else json.dumps(value)})


class Universal(unittest.TestCase):
    """PascalCase at every level, by Amazon's own model."""

    def test_every_key_becomes_the_apis_own(self):
        value = {
            "TaskDefinition": "f",
            "EnableECSManagedTags": True,
            "NetworkConfiguration": {"AwsvpcConfiguration": {"Subnets": ["subnet-1"]}},
            "Overrides": {"ContainerOverrides": [{"Name": "app", "Cpu": 1}], "EphemeralStorage": {"SizeInGiB": 21}},
        }
        self.assertEqual(
            parse(value),
            (
                "ecs",
                "RunTask",
                {
                    "taskDefinition": "f",
                    "enableECSManagedTags": True,
                    "networkConfiguration": {"awsvpcConfiguration": {"subnets": ["subnet-1"]}},
                    "overrides": {"containerOverrides": [{"name": "app", "cpu": 1}], "ephemeralStorage": {"sizeInGiB": 21}},
                },
            ),
        )

    def test_every_missing_field_is_named(self):
        with self.assertRaises(Refused) as refused:
            parse({"clusterName": "x"}, "arn:aws:scheduler:::aws-sdk:eks:updateNodegroupConfig")
        self.assertIn("missing the following field(s): ClusterName, NodegroupName.", refused.exception.message)

    def test_what_is_not_a_target(self):
        for arn in (
            RUN_TASK.replace("runTask", "RunTask"),
            RUN_TASK.replace("runTask", "runTasks"),
            RUN_TASK.replace("ecs", "nosuch"),
            RUN_TASK.replace("runTask", "listTasks"),
            "arn:aws:lambda:::f",
        ):
            with self.subTest(arn), self.assertRaises(Refused):
                parse({"TaskDefinition": "f"}, arn)

    def test_what_is_no_json(self):
        for text in ("{", "[]", '"x"', "null"):
            with self.subTest(text), self.assertRaisesRegex(Refused, "Invalid RequestJson provided"):
                parse(text)

    def test_only_literal_brackets_are_filled(self):
        def fill(text):
            return universal.fill(text, "arn:s", "2026-12-04T18:00:00Z", "e1", 1)

        self.assertEqual(fill("<aws.scheduler.scheduled-time> <aws.scheduler.execution-id>"), "2026-12-04T18:00:00Z e1")
        self.assertEqual(fill(r"\u003caws.scheduler.scheduled-time\u003e"), r"\u003caws.scheduler.scheduled-time\u003e")
